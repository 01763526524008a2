/** The API keys in the database. Times are `Date`s here, milliseconds in the table. */
import { type ExpressionBuilder, sql } from 'kysely'
import type { ApiKeysTable, Database, Tables } from '../../db/tables.ts'
import { newKey } from './format.ts'

/** Uses noted in one statement at most. */
const MAX_NOTES = 500

/** A key as it may be shown: everything but the key. */
export type ApiKey = Awaited<ReturnType<typeof listKeys>>[number]

/** A key just made: the only time that `key` itself is seen. */
export type NewApiKey = Awaited<ReturnType<typeof createKey>>

/** A key that works, as the service needs to know it. */
export type WorkingKey = Awaited<ReturnType<typeof findKeys>>[number]

/** Makes a key that works until `expiresAt` or its revocation, and may only read if `readOnly`. */
export async function createKey(
  db: Database,
  name: string,
  { expiresAt, readOnly = false }: { expiresAt?: Date | undefined; readOnly?: boolean } = {},
) {
  const { key, prefix, hash } = newKey(readOnly)
  const { insertId } = await db
    .insertInto('api_keys')
    .values({
      name,
      prefix,
      hash,
      created_at: BigInt(Date.now()),
      expires_at: expiresAt ? BigInt(expiresAt.getTime()) : null,
      read_only: readOnly ? 1n : 0n,
    })
    .executeTakeFirstOrThrow()
  if (insertId === undefined) throw new Error('The database gave no id for a new API key')
  return { id: insertId, key }
}

/** All keys, the working and the ended, in the order they were made. */
export async function listKeys(db: Database) {
  const rows = await db.selectFrom('api_keys').selectAll().orderBy('id').execute()
  const now = BigInt(Date.now())
  return rows.map((row) => {
    const isRevoked = row.revoked_at !== null && row.revoked_at <= now
    const isExpired = row.expires_at !== null && row.expires_at <= now
    return {
      id: row.id,
      name: row.name,
      prefix: row.prefix,
      state: isRevoked ? 'revoked' : isExpired ? 'expired' : 'working',
      readOnly: row.read_only !== 0n,
      createdAt: new Date(Number(row.created_at)),
      /** When it ends: it expires, or its grace after a rotation is over. */
      expiresAt: toDate(isRevoked ? row.expires_at : end(row)),
      revokedAt: isRevoked ? toDate(row.revoked_at) : undefined,
      lastUsedAt: toDate(row.last_used_at),
    }
  })
}

/** When a key ends that was not revoked yet: it expires, or its grace is over. */
function end(row: Pick<ApiKeysTable, 'expires_at' | 'revoked_at'>): bigint | null {
  const { expires_at, revoked_at } = row
  if (expires_at === null || revoked_at === null) return expires_at ?? revoked_at
  return revoked_at < expires_at ? revoked_at : expires_at
}

const toDate = (time: bigint | null) => (time === null ? undefined : new Date(Number(time)))

/** Somebody else rotated or revoked the same key at the same moment. */
export class ChangedMeanwhileError extends Error {
  override name = 'ChangedMeanwhileError'
}

/**
 * Makes a key of the same name and rights, and of as long a life, in place of a working one, which
 * ends at `graceUntil` unless it ends sooner anyway. Undefined when there is no working key with this id;
 * of several who do so at once one makes a key, and the others get ChangedMeanwhileError.
 */
export async function rotateKey(
  db: Database,
  id: bigint,
  graceUntil: Date,
): Promise<NewApiKey | undefined> {
  // Read before the transaction: inside, some servers refuse to write what changed since.
  const old = await working(db)
    .select(['name', 'created_at', 'expires_at', 'revoked_at', 'read_only'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!old) return undefined
  return await db.transaction().execute(async (transaction) => {
    // `expires_at` stays as it is, for it tells how long a life the key was given. The end must
    // differ from the one before: that is what shows others that the key was rotated meanwhile.
    const grace = BigInt(graceUntil.getTime())
    const revoked_at =
      old.revoked_at === null || grace < old.revoked_at ? grace : old.revoked_at - 1n
    const { numUpdatedRows } = await transaction
      .updateTable('api_keys')
      .set({ revoked_at })
      .where('id', '=', id)
      .where('revoked_at', old.revoked_at === null ? 'is' : '=', old.revoked_at)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) throw new ChangedMeanwhileError(`Key ${id} was changed meanwhile`)
    const lifetime = old.expires_at === null ? undefined : old.expires_at - old.created_at
    const expiresAt = lifetime === undefined ? undefined : new Date(Date.now() + Number(lifetime))
    return await createKey(transaction, old.name, { expiresAt, readOnly: old.read_only !== 0n })
  })
}

/** Ends a working key. False when there is no working key with this id. */
export async function revokeKey(db: Database, id: bigint): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set({ revoked_at: BigInt(Date.now()) })
    .where('id', '=', id)
    .where(isWorking)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Those keys with one of these hashes that work now. */
export async function findKeys(db: Database, hashes: readonly string[]) {
  const rows = await working(db)
    .select(['id', 'hash', 'expires_at', 'revoked_at', 'read_only'])
    .where('hash', 'in', hashes)
    .execute()
  return rows.map((row) => {
    const until = end(row)
    return {
      keyId: row.id,
      hash: row.hash,
      /** When it stops working, in milliseconds since 1970; Infinity for never. */
      until: until === null ? Number.POSITIVE_INFINITY : Number(until),
      readOnly: row.read_only !== 0n,
    }
  })
}

/** Notes when keys were last used; what another instance noted later stays. */
export async function touchKeys(db: Database, uses: ReadonlyMap<bigint, number>): Promise<void> {
  const notes = [...uses].map(([id, time]) => ({ id, time: BigInt(time) }))
  while (notes.length > 0) {
    const batch = notes.splice(0, MAX_NOTES)
    const cases = batch.map(({ id, time }) => sql`when ${id} then ${time}`)
    const time = sql<bigint>`case id ${sql.join(cases, sql` `)} end`
    await db
      .updateTable('api_keys')
      .set({ last_used_at: time })
      .where(
        'id',
        'in',
        batch.map(({ id }) => id),
      )
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', time)]))
      .execute()
  }
}

const working = (db: Database) => db.selectFrom('api_keys').where(isWorking)

function isWorking(eb: ExpressionBuilder<Tables, 'api_keys'>) {
  const now = BigInt(Date.now())
  const isOpen = (time: 'expires_at' | 'revoked_at') =>
    eb.or([eb(time, 'is', null), eb(time, '>', now)])
  return isOpen('expires_at').and(isOpen('revoked_at'))
}
