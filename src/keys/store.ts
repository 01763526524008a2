/** The API keys in the database, whose clock alone decides which of them work. */
import { randomBytes } from 'node:crypto'
import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import { lookUp } from '../../db/coalesce/lookup.ts'
import type { Deadline } from '../../db/deadline.ts'
import { now } from '../../db/engine.ts'
import { execute } from '../../db/statement.ts'
import type { ApiKeysTable, Database, Tables } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newKey } from './key.ts'

/** Maximum number of keys whose use one statement records. */
const MAX_USES = 500

/** The properties of a key, without its secret. */
export type ApiKey = Awaited<ReturnType<typeof listKeys>>[number]

/** A new key. Only here is `key` itself known. */
export type NewApiKey = Awaited<ReturnType<typeof createKey>>

/**
 * Creates a key that works for `lifetime` milliseconds, or until its revocation. `holder` is that of the
 * key that this one follows from.
 */
export async function createKey(
  db: Database,
  name: string,
  { lifetime, readOnly = false, holder = randomBytes(8).readBigInt64BE() }: Terms = {},
) {
  const { key, prefix, hash } = newKey(readOnly)
  const { insertId } = await db
    .insertInto('api_keys')
    .values({
      name,
      prefix,
      hash,
      created_at: now(db),
      expires_at: lifetime === undefined ? null : after(db, lifetime),
      read_only: readOnly ? 1n : 0n,
      holder,
    })
    .executeTakeFirstOrThrow()
  if (insertId === undefined) throw new Error('The database returned no id for a new API key')
  return { id: insertId, key }
}

interface Terms {
  lifetime?: number | undefined
  readOnly?: boolean
  holder?: bigint
}

/** Returns all keys in the order of their creation, the ended ones included. */
export async function listKeys(db: Database) {
  const all = db.selectFrom('api_keys').selectAll().select(now(db).as('now'))
  const rows = await all.orderBy('id').execute()
  return rows.map((row) => {
    const expiresAt = endOf(row)
    const isExpired = expiresAt !== undefined && expiresAt <= row.now
    return {
      id: row.id,
      name: row.name,
      prefix: row.prefix,
      state: row.revoked_at !== null ? 'revoked' : isExpired ? 'expired' : 'working',
      readOnly: row.read_only !== 0n,
      createdAt: dateOf(row.created_at),
      /** When the key expires, or its grace period after a rotation ends. */
      expiresAt: dateOf(expiresAt),
      revokedAt: dateOf(row.revoked_at),
      lastUsedAt: dateOf(row.last_used_at),
    }
  })
}

/** The last time of a Date, in the year 275760, in milliseconds since 1970. A column may have a later one. */
const LAST_TIME = 8_640_000_000_000_000

const dateOf = (time: bigint | null | undefined) =>
  typeof time === 'bigint' ? new Date(Math.min(Number(time), LAST_TIME)) : undefined

/** Returns when a key ends by itself: at its expiry, or after its grace period. */
function endOf({ expires_at, grace_until }: Pick<ApiKeysTable, 'expires_at' | 'grace_until'>) {
  if (expires_at === null || grace_until === null) return expires_at ?? grace_until ?? undefined
  return grace_until < expires_at ? grace_until : expires_at
}

/**
 * Creates a key with the name, rights, lifetime and holder of a working one. The old key works for
 * `grace` more milliseconds, or less if it ends earlier; 0 revokes it. Returns undefined if no working
 * key has this id.
 */
export async function rotateKey(
  db: Database,
  id: bigint,
  grace: number,
): Promise<NewApiKey | undefined> {
  const end = after(db, grace)
  return await inTransaction(db, async (transaction) => {
    // First, because this locks the row: a concurrent rotation or revocation waits.
    const { numUpdatedRows } = await transaction
      .updateTable('api_keys')
      .set(
        grace === 0
          ? { revoked_at: now(db) }
          : { grace_until: sql`case when grace_until < ${end} then grace_until else ${end} end` },
      )
      .where('id', '=', id)
      .where((eb) => isWorking(eb, db))
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return undefined
    const old = await transaction
      .selectFrom('api_keys')
      .select(['name', 'created_at', 'expires_at', 'read_only', 'holder'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    return await createKey(transaction, old.name, {
      lifetime: old.expires_at === null ? undefined : Number(old.expires_at - old.created_at),
      readOnly: old.read_only !== 0n,
      holder: old.holder ?? id,
    })
  })
}

/** Revokes a key, whatever a clock says of its end. Returns false if it is revoked, or none has this id. */
export async function revokeKey(db: Database, id: bigint): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set({ revoked_at: now(db) })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Returns the working key with a hash. Throws DatabaseUnavailableError, and the reason of the deadline. */
export async function findKey(db: Database, hash: string, deadline: Deadline) {
  const row = await findRow(db, hash, deadline)
  if (!row) return undefined
  const end = endOf(row)
  return {
    keyId: row.id,
    holder: row.holder ?? row.id,
    readOnly: row.read_only !== 0n,
    /** Milliseconds that the key still works, from the look-up on; Infinity without an end. */
    left: end === undefined ? Number.POSITIVE_INFINITY : Number(end - row.now),
  }
}

const findRow = lookUp<string, Selectable<ApiKeysTable> & { now: bigint }>({
  select: (db, values) => {
    const hashes = values.map((value) => value((hash) => hash))
    const all = db.selectFrom('api_keys').selectAll().select(now(db).as('now'))
    return all.where('hash', 'in', hashes).where((eb) => isWorking(eb, db))
  },
  nameOf: (key) => (typeof key === 'string' ? key : key.hash),
})

/** Records that keys were used, by their ids: the time is that of this record. */
export async function recordUses(db: Database, keyIds: Iterable<bigint>, deadline?: Deadline) {
  const waiting = [...keyIds]
  while (waiting.length > 0) {
    const update = db.updateTable('api_keys').set({ last_used_at: now(db) })
    await execute(db, update.where('id', 'in', waiting.splice(0, MAX_USES)), deadline)
  }
}

/** An expression for the time in so many milliseconds. */
const after = (db: Database, duration: number) => sql<bigint>`${now(db)} + ${BigInt(duration)}`

function isWorking(eb: ExpressionBuilder<Tables, 'api_keys'>, db: Database) {
  const isOpen = (time: 'expires_at' | 'grace_until') =>
    eb.or([eb(time, 'is', null), eb(time, '>', now(db))])
  return eb.and([eb('revoked_at', 'is', null), isOpen('expires_at'), isOpen('grace_until')])
}
