/** The log, on stderr: text in a terminal, otherwise one line of JSON for each entry. */
import { type Logger, pino } from 'pino'

export type Log = Logger

const STDERR = 2

/** Milliseconds that the reader of the log has to take the last entries, at the exit of the process. */
const EXIT_TIMEOUT = 2_000

/**
 * Returns the log. Outside a terminal it writes several entries at once, within 100 ms, and no request
 * waits for the reader of the log. The rest is written when the process exits, except at SIGKILL. If the
 * reader does not read, more than 8 MB of entries are dropped, and their number is logged.
 */
export async function createLog(): Promise<Log> {
  // `process.stderr` makes pipes and sockets non-blocking, so that one that is full delays no request.
  if (process.stderr.isTTY) {
    const { default: pretty } = await import('pino-pretty')
    const ignore = 'pid,hostname'
    return pino(pretty({ destination: STDERR, sync: true, singleLine: true, ignore }))
  }
  let isFull = false
  const destination = pino.destination({
    dest: STDERR,
    // An asynchronous write ends a turn later, and entries may arrive faster than one write a turn.
    sync: true,
    maxLength: 8 * 1024 * 1024,
    retryEAGAIN() {
      isFull = true
      return false // it would sleep for 100 ms, while a fast reader empties a pipe of 64 KB
    },
  })
  // A write takes 50 µs, whatever its size. SonicBoom could gather entries, too, but with each it copies all
  // that it has, which is a fifth of the memory that a request allocates.
  let lines = ''
  // Without a line it writes those that wait.
  const write = (line = '') => {
    lines += line
    if (line && lines.length < 16_000) return
    // Repeats a failed write. SonicBoom drops what exceeds the maximum without an attempt to write the rest.
    isFull = false
    if (!line) destination.write('')
    if (lines) destination.write(lines)
    lines = ''
  }
  setInterval(write, 100).unref()
  // Collectors know levels by their names.
  const log = pino({ formatters: { level: (level) => ({ level }) } }, { write })
  let dropped = 0
  const reportDropped = () => {
    const entries = dropped
    dropped = 0
    if (entries > 0)
      log.error({ entries }, 'The log was not read fast enough: entries were dropped')
  }
  destination
    .on('drop', (entries: string) => (dropped += entries.split('\n').length - 1))
    .on('drain', reportDropped)
    .on('error', () => {})
  process.on('exit', () => {
    const end = performance.now() + EXIT_TIMEOUT
    // Not destination.flushSync: it repeats a write to a full disk or a closed pipe forever.
    const cell = new Int32Array(new SharedArrayBuffer(4))
    const writeAll = () => {
      for (write(); isFull && performance.now() < end; write()) Atomics.wait(cell, 0, 0, 2) // ms
    }
    writeAll()
    reportDropped()
    writeAll()
  })
  return log
}
