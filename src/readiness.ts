/** Whether this process should be sent requests. */
import { isCurrent } from '../db/migrate.ts'
import type { Database } from '../db/tables.ts'
import { within } from '../db/within.ts'

/** Milliseconds that the database has to answer; load balancers ask about every second. */
const BOUND = 1_000

export interface Readiness {
  /** Ready: not stopping, the database answers in time, and its migrations are current. */
  isReady(): Promise<boolean>
  /** From now on not ready. */
  stop(): void
  readonly stopping: boolean
}

export function createReadiness(db: Database): Readiness {
  let stopping = false
  let asking: Promise<boolean> | undefined

  // However many ask at once, the database is asked once.
  const ask = () => {
    asking ??= isCurrent(db)
      .catch(() => false)
      .finally(() => {
        asking = undefined
      })
    return within(asking, BOUND, undefined, () => undefined).catch(() => false)
  }
  return {
    isReady: async () => !stopping && (await ask()),
    stop() {
      stopping = true
    },
    get stopping() {
      return stopping
    },
  }
}
