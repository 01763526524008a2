/** The log, on stderr: text in a terminal, otherwise one line of JSON for each entry. */
import { type Logger, pino } from 'pino'

export type Log = Logger

const STDERR = 2

/** Milliseconds that an entry waits at most before it is written. */
const FLUSH_INTERVAL = 100

/**
 * Returns the log. Outside a terminal it writes several entries at once, so that no request waits for
 * it; pino writes the rest when the process exits, except at SIGKILL.
 */
export async function createLog(): Promise<Log> {
  if (!process.stderr.isTTY) {
    return pino(
      pino.destination({
        dest: STDERR,
        sync: false,
        minLength: 2_048,
        // A pipe takes as much in one piece (POSIX, PIPE_BUF); all workers write to the same pipe.
        maxWrite: 4_096,
        // If the reader of the log does not read, more entries are dropped, to bound the memory.
        maxLength: 16 * 1024 * 1024,
        periodicFlush: FLUSH_INTERVAL,
      }),
    )
  }
  const { default: pretty } = await import('pino-pretty')
  const ignore = 'pid,hostname'
  return pino(pretty({ destination: STDERR, sync: true, singleLine: true, ignore }))
}

/** Milliseconds between two entries about a frequent event. */
const INTERVAL = 1_000

/**
 * Returns a function to call at each occurrence of an event. The first call is reported at once;
 * later calls are reported once a second, with their count.
 */
export function summed(report: (count: number) => void): () => void {
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
