/** When a process is to stop, and until when. */
import type { Log } from '../observe/log.ts'

/**
 * Milliseconds within which the same signal again is the same wish: at Ctrl-C a terminal signals the
 * whole group of processes, and npm hands its signal on to what it runs.
 */
const SAME_WISH = 1_000

/** Milliseconds that the reader of the log has to take what is left of it. */
const LOG_TIMEOUT = 2_000

/** Resolves at the first SIGTERM or SIGINT; the next wish to stop ends the process at once, with code 1. */
export function signalled(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let first: { signal: NodeJS.Signals; time: number } | undefined
    const onSignal = (signal: NodeJS.Signals) => {
      const time = performance.now()
      first ??= { signal, time }
      if (signal !== first.signal || time - first.time > SAME_WISH) end(log, 1)
      resolve()
    }
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  })
}

/**
 * Resolves when an exception was caught by nobody: after that the process is in no known state, so
 * it stops in order, with code 1 (https://nodejs.org/api/process.html#event-uncaughtexception).
 */
export function uncaught(log: Log): Promise<void> {
  return new Promise((resolve) => {
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'Uncaught exception')
      process.exitCode = 1
      resolve()
    })
  })
}

/**
 * Ends the process with code 1 after `timeout` milliseconds, whatever is still going on, unless the
 * function that it returns is called before. The timer keeps the process alive: what hangs need not.
 */
export function cutOff(timeout: number, log: Log): () => void {
  const timer = setTimeout(() => {
    log.warn(`Not everything was finished within ${timeout} ms; it is cut off`)
    end(log, 1)
  }, timeout)
  return () => clearTimeout(timer)
}

/**
 * Ends the process with this code, or that of `process.exitCode`, when the log is written. Where its
 * reader stands still, process.exit() would wait for ever, so the process kills itself.
 */
export function end(log: Log, code = process.exitCode): void {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LOG_TIMEOUT)
  log.flush(() => process.exit(code))
}
