/** The API keys in the database. Times are `Date`s here, milliseconds in the table. */
import type { ExpressionBuilder } from 'kysely'
import type { Database, Tables } from '../../db/tables.ts'
import { newKey } from './format.ts'

/** Uses noted in one statement at most. */
const MAX_NOTES = 500

/** A key as it may be shown: everything but the key. */
export interface ApiKey {
  id: bigint
  name: string
  prefix: string
  state: 'working' | 'expired' | 'revoked'
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  lastUsedAt: Date | undefined
}

/** A key just made: the only time that `key` itself is seen. */
export interface NewApiKey {
  id: bigint
  key: string
}

/** A key that works, as the service needs to know it. */
export interface WorkingKey {
  id: bigint
  hash: string
  /** When it stops working, in milliseconds since 1970; Infinity for never. */
  until: number
}

/** Makes a key. It works until `expiresAt`, or until it is revoked. */
export async function createKey(db: Database, name: string, expiresAt?: Date): Promise<NewApiKey> {
  const { key, prefix, hash } = newKey()
  const { insertId } = await db
    .insertInto('api_keys')
    .values({
      name,
      prefix,
      hash,
      created_at: BigInt(Date.now()),
      expires_at: expiresAt ? BigInt(expiresAt.getTime()) : null,
    })
    .executeTakeFirstOrThrow()
  if (insertId === undefined) throw new Error('The database gave no id for a new API key')
  return { id: insertId, key }
}

/**
 * Makes a key if none was ever made. One statement decides and does it, so that of several
 * who try at once only one gets a key; the others get undefined.
 */
export async function createFirstKey(db: Database, name: string): Promise<string | undefined> {
  const { key, prefix, hash } = newKey()
  const row = db
    .selectNoFrom(({ val }) => [
      val(name).as('name'),
      val(prefix).as('prefix'),
      val(hash).as('hash'),
      val(BigInt(Date.now())).as('created_at'),
    ])
    .where(({ not, exists }) => not(exists(db.selectFrom('api_keys').select('id'))))
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('api_keys')
    .columns(['name', 'prefix', 'hash', 'created_at'])
    .expression(row)
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n ? key : undefined
}

/** All keys, the working and the ended, in the order they were made. */
export async function listKeys(db: Database): Promise<ApiKey[]> {
  const rows = await db.selectFrom('api_keys').selectAll().orderBy('id').execute()
  return rows.map((row) => {
    const expiresAt = toDate(row.expires_at)
    const revokedAt = toDate(row.revoked_at)
    return {
      id: row.id,
      name: row.name,
      prefix: row.prefix,
      state: revokedAt ? 'revoked' : expiresAt && expiresAt <= new Date() ? 'expired' : 'working',
      createdAt: new Date(Number(row.created_at)),
      expiresAt,
      revokedAt,
      lastUsedAt: toDate(row.last_used_at),
    }
  })
}

const toDate = (time: bigint | null) => (time === null ? undefined : new Date(Number(time)))

/**
 * Makes a key of the same name, and of as long a life, in place of a working one, which ends at
 * `graceUntil` unless it ends sooner anyway. Undefined when there is no working key with this id.
 */
export async function rotateKey(
  db: Database,
  id: bigint,
  graceUntil: Date,
): Promise<NewApiKey | undefined> {
  return await db.transaction().execute(async (transaction) => {
    const old = await working(transaction)
      .select(['name', 'created_at', 'expires_at'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!old) return undefined
    const end = BigInt(graceUntil.getTime())
    if (old.expires_at === null || old.expires_at > end) {
      await transaction
        .updateTable('api_keys')
        .set({ expires_at: end })
        .where('id', '=', id)
        .execute()
    }
    const lifetime = old.expires_at === null ? undefined : old.expires_at - old.created_at
    const expiresAt = lifetime === undefined ? undefined : new Date(Date.now() + Number(lifetime))
    return await createKey(transaction, old.name, expiresAt)
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

/** Whether a key was ever made; it may have ended. */
export async function hasKeys(db: Database): Promise<boolean> {
  const row = await db.selectFrom('api_keys').select('id').limit(1).executeTakeFirst()
  return row !== undefined
}

/** Those keys with one of these hashes that work now. */
export async function findKeys(db: Database, hashes: readonly string[]): Promise<WorkingKey[]> {
  const rows = await working(db)
    .select(['id', 'hash', 'expires_at'])
    .where('hash', 'in', hashes)
    .execute()
  return rows.map(({ id, hash, expires_at }) => ({
    id,
    hash,
    until: expires_at === null ? Number.POSITIVE_INFINITY : Number(expires_at),
  }))
}

/** Notes when keys were last used; what another instance noted later stays. */
export async function touchKeys(db: Database, uses: ReadonlyMap<bigint, number>): Promise<void> {
  const notes = [...uses].map(([id, time]) => ({ id, time: BigInt(time) }))
  while (notes.length > 0) {
    const batch = notes.splice(0, MAX_NOTES)
    const [first, ...rest] = batch
    if (!first) return
    const time = (eb: ExpressionBuilder<Tables, 'api_keys'>) =>
      rest
        .reduce(
          (expression, note) => expression.when('id', '=', note.id).then(note.time),
          eb.case().when('id', '=', first.id).then(first.time),
        )
        .end()
    await db
      .updateTable('api_keys')
      .set({ last_used_at: time })
      .where(
        'id',
        'in',
        batch.map(({ id }) => id),
      )
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', time(eb))]))
      .execute()
  }
}

function working(db: Database) {
  return db.selectFrom('api_keys').where(isWorking)
}

function isWorking(eb: ExpressionBuilder<Tables, 'api_keys'>) {
  const unexpired = eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', BigInt(Date.now()))])
  return eb('revoked_at', 'is', null).and(unexpired)
}
