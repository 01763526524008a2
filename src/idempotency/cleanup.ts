/** The regular removal of expired Idempotency-Keys. */
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { now } from '../../db/engine.ts'
import type { Database } from '../../db/tables.ts'

/** Maximum number of rows that one statement removes, because SQLite blocks the process meanwhile. */
const MAX_ROWS = 100

/** Milliseconds between two statements, in which calls execute theirs. */
const PAUSE = 10

/** Milliseconds between two rounds. */
const INTERVAL = 10 * 60_000

/**
 * Removes the keys that are older than `lifetime` milliseconds, in a round every ten minutes, and logs a
 * failure. Returns a function that stops the removal.
 */
export function startCleanup(db: Database, lifetime: number, log: Logger): () => void {
  let isRunning = false
  let isStopped = false
  const timer = setInterval(async () => {
    if (isRunning) return
    isRunning = true
    try {
      while (!isStopped && (await removeOld(db, lifetime))) {
        await setTimeout(PAUSE, undefined, { ref: false })
      }
    } catch (error) {
      // A stop may close the database during a round.
      if (!isStopped) log.warn({ err: error }, 'Could not remove old idempotency keys')
    }
    isRunning = false
  }, INTERVAL).unref()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}

/** Removes the oldest keys, and returns whether there were any. */
async function removeOld(db: Database, lifetime: number): Promise<boolean> {
  const rows = await db
    .selectFrom('idempotency_keys')
    .select('id')
    .where('created_at', '<', sql<bigint>`${now(db)} - ${BigInt(lifetime)}`)
    .orderBy('created_at')
    .limit(MAX_ROWS)
    .execute()
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) await db.deleteFrom('idempotency_keys').where('id', 'in', ids).execute()
  return ids.length > 0
}
