/** Makes something once per Idempotency-Key, however often it is asked for. */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { DuplicateError, LockedError } from '../../db/errors.ts'
import type { Database } from '../../db/tables.ts'

/** Rows removed in one statement: few enough not to hold anybody up. */
const CLEANING_BATCH = 500

/** Milliseconds between two rounds of cleaning. */
const CLEANING_INTERVAL = 10 * 60_000

/** Who repeats what: a key counts per API key. */
export interface Once {
  apiKeyId: bigint
  idempotencyKey: string
  /** The request, in a form that is the same for the same request. */
  request: unknown
}

/** What came of it: the id of what was made, now or before; or why nothing was. */
export type Outcome = { id: bigint } | 'running' | 'different'

export interface OnceStore {
  /**
   * Runs `make` in a transaction that also keeps the key, unless the key was used before. `running`
   * when the same key is being used at this moment, `different` when it was for another request.
   * Gives up when `signal` aborts.
   */
  once(
    what: Once,
    signal: AbortSignal,
    make: (transaction: Database) => Promise<bigint>,
  ): Promise<Outcome>
  /** Ends the regular removal of what is older than the lifetime. */
  stop(): void
}

/** The keys of a database, each kept for `lifetime` milliseconds. */
export function onceStore(db: Database, lifetime: number, log: Logger): OnceStore {
  const running = new Set<string>()
  const timer = setInterval(() => {
    removeOld(db, Date.now() - lifetime).catch((error) =>
      log.warn({ err: error }, 'Could not remove old idempotency keys'),
    )
  }, CLEANING_INTERVAL).unref()

  return {
    async once(what, signal, make) {
      const name = `${what.apiKeyId} ${what.idempotencyKey}`
      if (running.has(name)) return 'running'
      running.add(name)
      try {
        return await attempt(db, lifetime, what, signal, make)
      } finally {
        running.delete(name)
      }
    },
    stop: () => clearInterval(timer),
  }
}

async function attempt(
  db: Database,
  lifetime: number,
  what: Once,
  signal: AbortSignal,
  make: (transaction: Database) => Promise<bigint>,
): Promise<Outcome> {
  const { apiKeyId } = what
  const keyHash = sha256(what.idempotencyKey)
  const fingerprint = sha256(JSON.stringify(what.request))
  const known = await db
    .selectFrom('idempotency_keys')
    .select(['id', 'fingerprint', 'pet_id', 'created_at'])
    .where('api_key_id', '=', apiKeyId)
    .where('key_hash', '=', keyHash)
    .executeTakeFirst({ signal })
  const oldest = BigInt(Date.now() - lifetime)
  if (known && known.created_at > oldest) {
    return known.fingerprint === fingerprint ? { id: known.pet_id } : 'different'
  }
  let isMade = false
  try {
    return await db.transaction().execute(async (transaction) => {
      if (known) {
        const remove = transaction.deleteFrom('idempotency_keys').where('id', '=', known.id)
        await remove.execute({ signal })
      }
      const id = await make(transaction)
      isMade = true
      await transaction
        .insertInto('idempotency_keys')
        .values({
          api_key_id: apiKeyId,
          key_hash: keyHash,
          fingerprint,
          pet_id: id,
          created_at: BigInt(Date.now()),
        })
        .execute({ signal })
      return { id }
    })
  } catch (error) {
    // Another instance is about to keep the same key, or did meanwhile: then it is there to be found.
    if (isMade && error instanceof LockedError) return 'running'
    if (error instanceof DuplicateError) return await attempt(db, lifetime, what, signal, make)
    throw error
  }
}

/** Removes the keys kept before `time`, some at a time: no statement holds up those who add keys. */
export async function removeOld(db: Database, time: number): Promise<void> {
  for (;;) {
    const rows = await db
      .selectFrom('idempotency_keys')
      .select('id')
      .where('created_at', '<', BigInt(time))
      .orderBy('created_at')
      .limit(CLEANING_BATCH)
      .execute()
    if (rows.length === 0) return
    const ids = rows.map(({ id }) => id)
    await db.deleteFrom('idempotency_keys').where('id', 'in', ids).execute()
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
