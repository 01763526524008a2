/** 5xx errors in the log: a line each, or a line a second where many calls have one cause. */
import { BrokenDatabaseError, DatabaseUnavailableError, OverloadedError } from '../../db/index.ts'
import type { Log } from '../observe/log.ts'
import type { Service } from './pipeline.ts'

/** Milliseconds between two lines of an operation with one cause. */
const INTERVAL = 1_000

/**
 * Returns the function that logs 5xx errors, and ignores all others. Of the calls that the database cannot serve, each
 * operation has a line a second for each cause: the first call at once, and then the number of those since.
 */
export function reporter(
  log: Log,
  reportBroken: (error: BrokenDatabaseError) => void,
): Service['report'] {
  /** The number of calls since the latest line, by operation and cause. */
  const unreported = new Map<string, number>()

  return (error, record, operation = record.operation) => {
    const { requestId, traceId, spanId } = record
    const { status, message, cause } = error
    if (status < 500) return
    if (cause instanceof BrokenDatabaseError) return reportBroken(cause)
    const request = { requestId, traceId, spanId, operation }
    if (!(cause instanceof DatabaseUnavailableError)) {
      return log.error({ ...request, err: cause ?? error }, message)
    }
    const { message: reason } = cause.cause as Error // the cause of these errors is one
    const name = `${operation} ${reason}`
    const more = unreported.get(name)
    if (more !== undefined) return void unreported.set(name, more + 1)
    const write = (entry: object) =>
      // Where an overload was found, which its stack says, tells nothing.
      cause instanceof OverloadedError
        ? log.error(entry, reason)
        : log.error({ ...entry, err: cause }, message)
    write({ ...request, calls: 1 })
    unreported.set(name, 0)
    const timer = setInterval(() => {
      const calls = unreported.get(name)
      unreported.set(name, 0)
      if (calls) return write({ operation, calls })
      unreported.delete(name)
      clearInterval(timer)
    }, INTERVAL).unref()
  }
}
