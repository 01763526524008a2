/** The log, on stderr: text in a terminal, otherwise one line of JSON for each entry. */
import { type Logger, pino } from 'pino'
import { unblockTerminals } from './terminal.ts'

export type Log = Logger

const STDERR = 2

/** Milliseconds that the reader of the log has to take the last entries, at the exit of the process. */
const EXIT_TIMEOUT = 2_000

/**
 * Returns the log. It writes several entries at once, within 100 ms, and no request waits for the reader of
 * the log. The rest is written when the process exits, except at SIGKILL. If the reader does not read, more
 * than 8 MB of entries are dropped, and their number is logged.
 */
export async function createLog(): Promise<Log> {
  // `process.stderr` makes pipes and sockets non-blocking, so that one that is full delays no request.
  const isTerminal = process.stderr.isTTY
  unblockTerminals()
  const format = isTerminal ? await readable() : (line: string) => line
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
  const write = (line?: string) => {
    if (line) lines += format(line)
    if (line && lines.length < 16_000) return
    // Repeats a failed write. SonicBoom drops what exceeds the maximum without an attempt to write the rest.
    isFull = false
    if (!line) destination.write('')
    if (lines) destination.write(lines)
    lines = ''
  }
  // A terminal takes 20 KB at once, so a log that was not read for a while is tried more often.
  const writeLater = () => setTimeout(writeNow, isFull ? 20 : 100).unref()
  const writeNow = () => {
    write()
    writeLater()
  }
  writeLater()
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
    .on('drop', (entries: string) => (dropped += entries.match(ENTRY)?.length ?? 0))
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

/** The beginning of an entry. In a terminal, the lines of a stack are indented. */
const ENTRY = /^\S/gm

/** Returns the function that makes an entry readable, with colours where the terminal has them. */
async function readable(): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  return prettyFactory({ singleLine: true, ignore: 'pid,hostname' })
}
