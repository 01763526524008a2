/** Whether this process should be sent requests. */
import { Deadline } from '../../db/deadline.ts'
import { dedupe } from '../../db/dedupe.ts'
import { isCurrent } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'

/** Milliseconds that the database has to answer; load balancers ask about every second. */
const BOUND = 1_000

export type Readiness = ReturnType<typeof createReadiness>

export function createReadiness(db: Database) {
  // However many ask at once, the database is asked once.
  const ask = dedupe<void, boolean>(async () => {
    const deadline = new Deadline(BOUND)
    try {
      return await isCurrent(db, deadline)
    } catch {
      return false
    } finally {
      deadline.clear()
    }
  })
  const readiness = {
    /** Set when the process is to stop: from then on it is not ready. */
    stopping: false,
    /** Ready: not stopping, the database answers in time, and its migrations are current. */
    async isReady(): Promise<boolean> {
      if (readiness.stopping) return false
      return await ask()
    },
  }
  return readiness
}
