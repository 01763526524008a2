/** The log, on stderr: text in a terminal, otherwise one line of JSON for each entry. */
import { type Logger, pino } from 'pino'
import { isJournal } from '../config/environment.ts'
import { unblockTerminals } from './terminal.ts'

export type Log = Logger

const STDERR = 2

/** Milliseconds that the reader of the log has to take the last entries, at the exit of the process. */
const EXIT_TIMEOUT = 2_000

/**
 * Characters after which entries are written, however recent: some 50 lines. A write takes 50 µs, whatever its size,
 * so it costs each of them 1 µs, and more of them would save less than that.
 */
const ENOUGH = 16_000

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
  // SonicBoom could gather entries, too, but with each it copies all that it has, which is a fifth of the memory that a
  // request allocates.
  let lines = ''
  const write = (line: string) => {
    // No character takes more than three bytes.
    lines += format(line.length > MAX_LINE / 3 ? shortened(line) : line)
    if (lines.length >= ENOUGH) writeAll()
  }
  const writeAll = () => {
    isFull = false
    // Repeats a failed write. SonicBoom drops what exceeds the maximum without an attempt to write the rest.
    destination.write('')
    if (lines) destination.write(lines)
    lines = ''
  }
  // A terminal takes 20 KB at once, so a log that was not read for a while is tried more often.
  const writeRegularly = () => {
    writeAll()
    setTimeout(writeRegularly, isFull ? 20 : 100).unref()
  }
  // Collectors know levels by their names.
  const output = isJournal(STDERR) ? withPriorities(write) : { write }
  const log = pino({ formatters: { level: (level) => ({ level }) } }, output)
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
  writeRegularly()
  process.on('exit', () => {
    const end = performance.now() + EXIT_TIMEOUT
    // Not destination.flushSync: it repeats a write to a full disk or a closed pipe forever.
    const cell = new Int32Array(new SharedArrayBuffer(4))
    const writeUntilEnd = () => {
      for (writeAll(); isFull && performance.now() < end; writeAll()) Atomics.wait(cell, 0, 0, 2) // ms
    }
    writeUntilEnd()
    reportDropped()
    writeUntilEnd()
  })
  return log
}

/** Maximum bytes of a line: Docker splits longer ones (https://github.com/moby/moby/pull/22982). */
const MAX_LINE = 16_384

/** Returns a line whose texts and lists are cut, all at one length, if it has more bytes than `MAX_LINE`. */
function shortened(line: string): string {
  if (Buffer.byteLength(line) <= MAX_LINE) return line
  const [priority = ''] = /^<\d>/.exec(line) ?? []
  const entry = JSON.parse(line.slice(priority.length))
  for (let length = MAX_LINE / 2; length >= 1; length /= 2) {
    const short = `${priority}${JSON.stringify(entry, (_name, value) => cut(value, length))}\n`
    if (Buffer.byteLength(short) <= MAX_LINE) return short
  }
  const { level, time, requestId, msg } = entry
  return `${priority}${JSON.stringify({ level, time, requestId, msg: cut(msg, MAX_LINE / 8) })}\n`
}

function cut(value: unknown, length: number): unknown {
  if (typeof value === 'string' && value.length > length) return `${value.slice(0, length)}…`
  return Array.isArray(value) ? value.slice(0, length) : value
}

/** The beginning of an entry. In a terminal, the lines of a stack are indented. */
const ENTRY = /^\S/gm

/** Returns the function that makes an entry readable, with colours where the terminal has them. */
async function readable(): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  return prettyFactory({ singleLine: true, ignore: 'pid,hostname' })
}
/** The priorities of syslog: https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html */
const priorityOf = (level: number) =>
  level >= 60 ? 2 : level >= 50 ? 3 : level >= 40 ? 4 : level >= 30 ? 6 : 7

/** Returns an output of pino that begins each line with its priority, which the journal removes. */
const withPriorities = (write: (line: string) => void) => ({
  [Symbol.for('pino.metadata')]: true, // pino then sets the level of each line
  lastLevel: 0,
  write(line: string) {
    write(`<${priorityOf(this.lastLevel)}>${line}`)
  },
})
