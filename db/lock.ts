/** The lock of a database: one process at a time migrates it, or adds the examples. */
import { engineOf } from './engine.ts'
import { LockedError } from './errors.ts'
import type { Database } from './tables.ts'

/** Milliseconds that other processes may hold the lock. */
const TIMEOUT = 60_000

const WAITING = 'Waiting for the lock of the database: another process may be migrating it'

export interface LockOptions {
  /** Is called once if other processes hold the lock for more than a second. */
  onWait?: ((message: string) => void) | undefined
  /** Milliseconds that other processes may hold the lock; a minute by default. */
  lockTimeout?: number | undefined
}

/**
 * Runs work while no other process has the lock of this database, and returns its result. A Galera cluster
 * has one lock on each node. On SQLite the work is one transaction. Throws LockedError after the timeout.
 */
export async function underLock<Result>(
  db: Database,
  work: (session: Database) => Promise<Result>,
  { onWait, lockTimeout = TIMEOUT }: LockOptions = {},
): Promise<Result> {
  const end = performance.now() + lockTimeout
  for (let attempt = 1; ; attempt++) {
    try {
      return await engineOf(db).underLock(db, work)
    } catch (error) {
      if (!(error instanceof LockedError)) throw error
    }
    if (performance.now() > end) {
      const message = `other processes have held its lock for ${lockTimeout / 1_000} s; try again when they are done`
      throw new LockedError(new Error(message), false)
    }
    if (attempt === 1) onWait?.(WAITING)
  }
}
