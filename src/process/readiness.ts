/** Whether this process should be sent requests. */
import { Deadline } from '../../db/deadline.ts'
import { isCurrent } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'

/** Milliseconds that the database has to answer; load balancers ask about every second. */
const BOUND = 1_000

export type Readiness = ReturnType<typeof createReadiness>

export function createReadiness(db: Database) {
  let asking: Promise<boolean> | undefined

  const ask = async () => {
    const deadline = new Deadline(BOUND)
    try {
      return await isCurrent(db, deadline)
    } catch {
      return false
    } finally {
      deadline.clear()
      asking = undefined
    }
  }
  const readiness = {
    /** Set when the process is to stop: from then on it is not ready. */
    stopping: false,
    /** Ready: not stopping, the database answers in time, and its migrations are current. */
    async isReady(): Promise<boolean> {
      if (readiness.stopping) return false
      // However many ask at once, the database is asked once.
      asking ??= ask()
      return await asking
    },
  }
  return readiness
}
