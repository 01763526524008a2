/** The readiness of a process: whether a load balancer should send it requests. */
import { Deadline } from '../../db/deadline.ts'
import { dedupe } from '../../db/dedupe.ts'
import { ReplacedError } from '../../db/errors.ts'
import { isCurrent } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import type { Log } from '../observe/log.ts'

/** Milliseconds that the database has to answer; load balancers check about once a second. */
const TIMEOUT = 1_000

export type Readiness = ReturnType<typeof createReadiness>

/** Returns the readiness of a process that serves from this database. Logs once that it was replaced. */
export function createReadiness(db: Database, log: Log) {
  let isReplaced = false
  const check = dedupe<void, boolean>(async () => {
    using deadline = new Deadline(TIMEOUT)
    try {
      const isReady = await isCurrent(db, deadline)
      isReplaced = false
      return isReady
    } catch (error) {
      if (error instanceof ReplacedError && !isReplaced) {
        isReplaced = true
        log.error((error.cause as Error).message)
      }
      return false
    }
  })
  const readiness = {
    /** True once the process begins to stop. */
    stopping: false,
    /**
     * Returns whether the process is not stopping, the database is still the opened one and answers
     * within a second, and its migrations are current. Concurrent callers share one query. Never throws.
     */
    async isReady(): Promise<boolean> {
      if (readiness.stopping) return false
      return await check()
    },
  }
  return readiness
}
