/** The readiness of a process: whether a load balancer should send it requests. */

import { BrokenDatabaseError, type Database, Deadline, isCurrent } from '../../db/index.ts'
import type { Log } from '../observe/log.ts'

/** Milliseconds that the database has to answer; load balancers check about once a second. */
const TIMEOUT = 1_000

export type Readiness = ReturnType<typeof createReadiness>

/** Returns the readiness of a process that serves from this database. */
export function createReadiness(db: Database, log: Log) {
  let reported: BrokenDatabaseError | undefined
  let wasReady = true
  let checking: Promise<boolean> | undefined
  const check = async () => {
    using deadline = new Deadline(TIMEOUT)
    try {
      if (!(await isCurrent(db, deadline))) throw new Error('The database lacks migrations')
      wasReady = true
    } catch (error) {
      if (error instanceof BrokenDatabaseError) readiness.reportBroken(error)
      // Once: a load balancer asks every second, and then sends no calls, whose failures would say why.
      else if (wasReady) log.error({ err: error }, 'The service is not ready')
      wasReady = false
    } finally {
      checking = undefined
    }
    return wasReady
  }
  const readiness = {
    /** True once the process begins to stop: for SHUTDOWN_DELAY, the server still accepts requests then. */
    stopping: false,
    /** Logs the error once, until the files of the database are back and lost again. */
    reportBroken(error: BrokenDatabaseError): void {
      if (error !== reported) log.error((error.cause as Error).message)
      reported = error
    },
    /**
     * Resolves to whether the process is not stopping, the files of the database are those that were opened,
     * it answers within a second, and its migrations are current. Concurrent callers share one query.
     */
    async isReady(): Promise<boolean> {
      if (readiness.stopping) return false
      checking ??= check()
      return await checking
    },
  }
  return readiness
}
