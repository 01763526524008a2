/** The API keys in the database. The table has times in milliseconds since 1970. */
import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { BatchLimits } from '../../db/coalesce/coalesce.ts'
import { lookUp } from '../../db/coalesce/lookup.ts'
import type { Deadline } from '../../db/deadline.ts'
import { execute } from '../../db/statement.ts'
import type { ApiKeysTable, Database, Tables } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newKey } from './key.ts'

/** Maximum number of uses that one statement records. */
const MAX_USES = 500

/** The properties of a key, without its secret. */
export type ApiKey = Awaited<ReturnType<typeof listKeys>>[number]

/** A new key. Only here is `key` itself known. */
export type NewApiKey = Awaited<ReturnType<typeof createKey>>

/** A working key, as authentication needs it. */
export type WorkingKey = NonNullable<Awaited<ReturnType<ReturnType<typeof keyLookUp>>>>

/** Creates a key that works until `expiresAt` or its revocation. A `readOnly` key may change nothing. */
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
  if (insertId === undefined) throw new Error('The database returned no id for a new API key')
  return { id: insertId, key }
}

/** Returns all keys in the order of their creation, the ended ones included. */
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
      /** When the key expires, or its grace period after a rotation ends. */
      expiresAt: toDate(isRevoked ? row.expires_at : endOf(row)),
      revokedAt: isRevoked ? toDate(row.revoked_at) : undefined,
      lastUsedAt: toDate(row.last_used_at),
    }
  })
}

/** Returns when a key ends that is not revoked yet: at its expiry, or after its grace period. */
function endOf(row: Pick<ApiKeysTable, 'expires_at' | 'revoked_at'>): bigint | null {
  const { expires_at, revoked_at } = row
  if (expires_at === null || revoked_at === null) return expires_at ?? revoked_at
  return revoked_at < expires_at ? revoked_at : expires_at
}

const toDate = (time: bigint | null) => (time === null ? undefined : new Date(Number(time)))

/** The key was rotated or revoked by a concurrent command. */
export class ChangedMeanwhileError extends Error {
  override name = 'ChangedMeanwhileError'
}

/**
 * Creates a key with the name, rights and lifetime of a working one. The old key ends at `graceUntil`,
 * or earlier if it expires earlier. Returns undefined if no working key has this id. Of concurrent
 * rotations one succeeds; the others throw ChangedMeanwhileError.
 */
export async function rotateKey(
  db: Database,
  id: bigint,
  graceUntil: Date,
): Promise<NewApiKey | undefined> {
  // Read before the transaction: inside it, some servers reject an update of a row that changed since.
  const old = await workingKeys(db)
    .select(['name', 'created_at', 'expires_at', 'revoked_at', 'read_only'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!old) return undefined
  return await inTransaction(db, async (transaction) => {
    // `expires_at` stays as it is, because the lifetime of the new key follows from it. `revoked_at`
    // must change, because a concurrent rotation recognizes this one by it.
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

/** Ends a working key. Returns false if no working key has this id. */
export async function revokeKey(db: Database, id: bigint): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set({ revoked_at: BigInt(Date.now()) })
    .where('id', '=', id)
    .where(isWorking)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Returns a look-up of working keys by their hashes. Each one has its own limits. */
export function keyLookUp(limits: BatchLimits = {}) {
  const findRow = lookUp<string, Pick<Selectable<ApiKeysTable>, (typeof WORKING_COLUMNS)[number]>>({
    ...limits,
    select(db, hashes) {
      const now = hashes[0]?.(() => BigInt(Date.now()))
      const wanted = hashes.map((value) => value((hash) => hash))
      return workingKeys(db, now).select(WORKING_COLUMNS).where('hash', 'in', wanted)
    },
    nameOf: (key) => (typeof key === 'string' ? key : key.hash),
  })
  return async (db: Database, hash: string, deadline: Deadline) => {
    const row = await findRow(db, hash, deadline)
    if (!row) return undefined
    const until = endOf(row)
    return {
      keyId: row.id,
      /** When the key ends, in milliseconds since 1970; Infinity for never. */
      until: until === null ? Number.POSITIVE_INFINITY : Number(until),
      readOnly: row.read_only !== 0n,
    }
  }
}

const WORKING_COLUMNS = ['id', 'hash', 'expires_at', 'revoked_at', 'read_only'] as const

/** Records when keys were last used, by their ids. A later time of another instance stays. */
export async function recordUses(
  db: Database,
  uses: ReadonlyMap<bigint, number>,
  deadline?: Deadline,
): Promise<void> {
  const rows = [...uses].map(([id, time]) => ({ id, time: BigInt(time) }))
  while (rows.length > 0) {
    const batch = rows.splice(0, MAX_USES)
    const cases = batch.map(({ id, time }) => sql`when ${id} then ${time}`)
    const time = sql<bigint>`case id ${sql.join(cases, sql` `)} end`
    const update = db
      .updateTable('api_keys')
      .set({ last_used_at: time })
      .where(
        'id',
        'in',
        batch.map(({ id }) => id),
      )
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', time)]))
    await execute(db, update, deadline)
  }
}

const workingKeys = (db: Database, now?: bigint) =>
  db.selectFrom('api_keys').where((eb) => isWorking(eb, now))

function isWorking(eb: ExpressionBuilder<Tables, 'api_keys'>, now = BigInt(Date.now())) {
  const isOpen = (time: 'expires_at' | 'revoked_at') =>
    eb.or([eb(time, 'is', null), eb(time, '>', now)])
  return isOpen('expires_at').and(isOpen('revoked_at'))
}
