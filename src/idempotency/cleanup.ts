/** The regular removal of Idempotency-Keys that are older than their lifetime. */
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { type Database, execute } from '../../db/index.ts'

/** Milliseconds between two rounds. */
const INTERVAL = 10 * 60_000

/** Maximum number of rows that one statement removes, because SQLite blocks the process meanwhile. */
const MAX_ROWS = 100

/** Milliseconds between two statements, in which calls execute theirs. */
const PAUSE = 10

/**
 * Removes the keys that are older than `lifetime` milliseconds, in a round every ten minutes, and logs a
 * failure. Returns a function that stops the removal.
 */
export function startCleanup(db: Database, lifetime: number, log: Logger): () => void {
  const old = db.kysely
    .selectFrom('idempotency_keys')
    .select('id')
    .where('created_at', '<', sql<bigint>`${db.engine.now} - ${BigInt(lifetime)}`)
    .orderBy('created_at')
    .limit(MAX_ROWS)
  let isStopped = false
  const round = async () => {
    while (!isStopped) {
      const ids = (await execute(db, old)).rows.map(({ id }) => id)
      if (ids.length === 0) return
      await execute(db, db.kysely.deleteFrom('idempotency_keys').where('id', 'in', ids))
      await setTimeout(PAUSE, undefined, { ref: false })
    }
  }
  // A stop may close the database during a round.
  const report = (error: unknown) =>
    isStopped || log.warn({ err: error }, 'Could not remove old idempotency keys')
  const timer = setInterval(() => round().catch(report), INTERVAL).unref()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}
