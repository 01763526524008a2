/** When a process is to stop, and until when. */
import type { Log } from './log.ts'

/** Resolves at the first SIGTERM or SIGINT; the second ends the process at once, with code 1. */
export function signalled(): Promise<void> {
  return new Promise((resolve) => {
    let isFirst = true
    const onSignal = () => {
      if (!isFirst) process.exit(1)
      isFirst = false
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
 * Ends the process after `timeout` milliseconds, whatever is still going on, unless the function that
 * it gives is called before.
 */
export function cutOff(timeout: number, log: Log): () => void {
  const exit = () => {
    log.warn(`Not everything was finished within ${timeout} ms; it is cut off`)
    process.exit()
  }
  const timer = setTimeout(exit, timeout).unref()
  return () => clearTimeout(timer)
}
