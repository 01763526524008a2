/** The log, on stderr: text in a terminal, otherwise one line of JSON for each entry. */
import { type Logger, pino } from 'pino'

export type Log = Logger

const STDERR = 2

/** Milliseconds that an entry waits at most before it is written. */
const FLUSH_INTERVAL = 100

/** Milliseconds that the reader of the log has to take the last entries, at the exit of the process. */
const EXIT_TIMEOUT = 2_000

/**
 * Returns the log. Outside a terminal it writes several entries at once, and no request waits for the
 * reader of the log. The rest is written when the process exits, except at SIGKILL. If the reader does
 * not read, more entries are dropped, and their number is logged.
 */
export async function createLog(): Promise<Log> {
  if (!process.stderr.isTTY) {
    const destination = createDestination()
    const log = pino({ hooks: { streamWrite: encode } }, destination)
    let dropped = 0
    destination.on('drop', () => dropped++)
    destination.on('write', () => {
      if (dropped === 0) return
      const entries = dropped
      dropped = 0
      log.error({ entries }, 'The log was not read fast enough: entries were dropped')
      if (dropped > 0) dropped = entries // this entry was dropped, too
    })
    return log
  }
  const { default: pretty } = await import('pino-pretty')
  const ignore = 'pid,hostname'
  return pino(pretty({ destination: STDERR, sync: true, singleLine: true, ignore }))
}

// The type of the hook knows no buffers, which a destination with `contentMode` takes.
const encode = (line: string) => Buffer.from(line) as never

function createDestination() {
  let exitDeadline = 0
  const destination = pino.destination({
    dest: STDERR,
    // With texts, each entry measures, and so copies, all that wait: 3 µs a request.
    contentMode: 'buffer',
    // An asynchronous write ends in a later turn of the event loop, and until then more entries arrive
    // than one write may have. A pipe that is full delays nothing: the write fails with EAGAIN, because
    // `process.stderr` has made pipes and sockets non-blocking.
    sync: true,
    // Nearly as much as one write may have: an entry has 200 to 300 bytes.
    minLength: 3_700,
    // A pipe takes as much in one piece (POSIX, PIPE_BUF); all workers write to the same pipe.
    maxWrite: 4_096,
    maxLength: 8 * 1024 * 1024,
    periodicFlush: FLUSH_INTERVAL,
    retryEAGAIN: () => performance.now() < exitDeadline,
  })
  // The next write repeats a failed one.
  destination.on('error', () => {})
  process.on('exit', () => {
    exitDeadline = performance.now() + EXIT_TIMEOUT
    // Not flushSync: it repeats a write to a full disk or a closed pipe forever.
    destination.end()
  })
  return destination
}

/** Milliseconds between two entries about a frequent event. */
const INTERVAL = 1_000

/**
 * Returns a function to call at each occurrence of an event. The first call is reported at once;
 * later calls are reported once a second, with their count.
 */
export function oncePerSecond(report: (count: number) => void): () => void {
  let count = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    timer = undefined
    if (count === 0) return
    report(count)
    count = 0
    timer = setTimeout(flush, INTERVAL).unref()
  }
  return () => {
    count++
    if (!timer) flush()
  }
}
