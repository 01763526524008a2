/** Whether this process should be sent requests. */
import { Deadline } from '../db/deadline.ts'
import { isCurrent } from '../db/migrate.ts'
import type { Database } from '../db/tables.ts'

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

  async function ask(): Promise<boolean> {
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
  return {
    async isReady() {
      if (stopping) return false
      asking ??= ask() // however many ask at once, the database is asked once
      return (await asking) && !stopping
    },
    stop() {
      stopping = true
    },
    get stopping() {
      return stopping
    },
  }
}
