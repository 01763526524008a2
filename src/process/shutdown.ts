/** The stop of a process: what requests it, and how long it may take. */
import type { Log } from '../observe/log.ts'

/**
 * Milliseconds in which further signals count as the same request: at Ctrl-C a terminal signals the whole
 * process group, npm passes its signal on to the program that it runs, and systemd may send SIGHUP right
 * after SIGTERM.
 */
const SAME_REQUEST = 1_000

/**
 * Resolves at the first signal that requests a stop: SIGTERM, SIGINT, SIGHUP (a terminal that closes) or
 * SIGUSR2. A second one ends the process at once, with code 1.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined
    const onSignal = () => {
      first ??= performance.now()
      if (performance.now() - first > SAME_REQUEST) process.exit(1)
      resolve()
    }
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2']) process.on(signal, onSignal)
  })
}

/**
 * Resolves when `request` does, or at an uncaught exception, which it logs. The stop that follows may take
 * `timeout` milliseconds. After an uncaught exception the state of the process is undefined, so it must stop;
 * its exit code is 1 (https://nodejs.org/api/process.html#warning-using-uncaughtexception-correctly).
 */
export async function stopRequested(request: Promise<void>, timeout: number, log: Log) {
  const { promise: failed, resolve } = Promise.withResolvers<void>()
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'Uncaught exception')
    process.exitCode = 1
    resolve()
  })
  await Promise.race([request, failed])
  // The timer keeps the process alive, because work that hangs may not keep it alive.
  setTimeout(() => {
    log.warn(`The stop did not finish within ${timeout} ms (SHUTDOWN_TIMEOUT): the rest is cut off`)
    process.exit(1)
  }, timeout)
}
