/** The regular removal of expired Idempotency-Keys. */
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../db/tables.ts'

/** Maximum number of rows that one statement removes, because SQLite blocks the process meanwhile. */
const BATCH = 100

/** Milliseconds between two statements, in which calls execute theirs. */
const PAUSE = 10

/** Milliseconds between two removals. */
const INTERVAL = 10 * 60_000

/**
 * Removes every ten minutes the keys that are older than `lifetime` milliseconds, and logs a failure.
 * Returns a function that stops the removal.
 */
export function startCleanup(db: Database, lifetime: number, log: Logger): () => void {
  let isRunning = false
  let isStopped = false
  const timer = setInterval(async () => {
    if (isRunning) return
    isRunning = true
    try {
      await removeOld(db, Date.now() - lifetime, () => isStopped)
    } catch (error) {
      // A stop may close the database during a removal.
      if (!isStopped) log.warn({ err: error }, 'Could not remove old idempotency keys')
    }
    isRunning = false
  }, INTERVAL).unref()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}

async function removeOld(db: Database, time: number, isStopped: () => boolean): Promise<void> {
  while (!isStopped()) {
    const rows = await db
      .selectFrom('idempotency_keys')
      .select('id')
      .where('created_at', '<', BigInt(time))
      .orderBy('created_at')
      .limit(BATCH)
      .execute()
    if (rows.length === 0) return
    const ids = rows.map(({ id }) => id)
    await db.deleteFrom('idempotency_keys').where('id', 'in', ids).execute()
    await setTimeout(PAUSE, undefined, { ref: false })
  }
}
