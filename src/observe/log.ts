/** The log: on stderr, readable in a terminal, otherwise a line of JSON for each entry. */
import { type Logger, pino } from 'pino'

export type Log = Logger

const STDERR = 2

/** Milliseconds after which an entry is written at the latest. */
const FLUSH_INTERVAL = 100

/**
 * Several entries are written at once, and none makes a request wait. pino writes what is left
 * when the process ends in order, by process.exit() or because of an exception.
 */
export async function createLog(): Promise<Log> {
  if (!process.stderr.isTTY) {
    return pino(
      pino.destination({
        dest: STDERR,
        sync: false,
        minLength: 2_048,
        // What a pipe takes in one piece (POSIX, PIPE_BUF): workers write to the same one.
        maxWrite: 4_096,
        // A reader that stands still must not fill the memory: what comes then is dropped.
        maxLength: 16 * 1024 * 1024,
        periodicFlush: FLUSH_INTERVAL,
      }),
    )
  }
  const { default: pretty } = await import('pino-pretty')
  const ignore = 'pid,hostname'
  return pino(pretty({ destination: STDERR, sync: true, singleLine: true, ignore }))
}

/** Milliseconds between two entries about what happens many times a second. */
const INTERVAL = 1_000

/**
 * A function that may be called any number of times: `tell` hears of the first call at once, and
 * of those that follow once a second, with how many there were.
 */
export function summed(tell: (count: number) => void): () => void {
  let count = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    timer = undefined
    if (count === 0) return
    tell(count)
    count = 0
    timer = setTimeout(flush, INTERVAL).unref()
  }
  return () => {
    count++
    if (!timer) flush()
  }
}
