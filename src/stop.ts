/** When a process is to stop. */
import type { Logger } from 'pino'

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
export function uncaught(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'Uncaught exception')
      process.exitCode = 1
      resolve()
    })
  })
}
