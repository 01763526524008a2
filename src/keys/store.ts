/** The API keys in the database, whose clock alone decides which of them work. */
import { randomBytes } from 'node:crypto'
import { type Generated, type Selectable, sql } from 'kysely'
import {
  type Builder,
  type Database,
  type Deadline,
  execute,
  inTransaction,
  lookUp,
  type RootDatabase,
  underLock,
} from '../../db/index.ts'
import { hashKey, newKey, visiblePrefix } from './key.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    api_keys: ApiKeysTable
  }
}

interface ApiKeysTable {
  id: Generated<bigint>
  name: string
  /** The first characters of the key, by which operators recognize it. */
  prefix: string
  /** SHA-256 of the key, 64 hexadecimal digits. The key itself is not stored. */
  hash: string
  created_at: bigint
  expires_at: bigint | null
  /** A key with a time here is revoked, whatever the time is. */
  revoked_at: bigint | null
  last_used_at: bigint | null
  /** 1 for a key that may only read, otherwise 0. */
  read_only: bigint
  /** When a rotated key stops working. */
  grace_until: bigint | null
  /**
   * A random number that the keys that follow from one another by rotation share; their Idempotency-Keys
   * are the same. Null stands for the key's id, which is not random: a restore may give it out again.
   */
  holder: bigint | null
}

/** Maximum number of keys whose use one statement records. */
const MAX_USES = 500

interface KeyTerms {
  lifetime?: number | undefined
  readOnly?: boolean
  key?: string
  holder?: bigint
}

/**
 * Creates a key that works for `lifetime` milliseconds, or until its revocation. `key` is new unless it is
 * given, and `holder` is that of the key that this one follows from. Only the result has the key itself.
 */
export async function createKey(
  db: Database,
  name: string,
  {
    lifetime,
    readOnly = false,
    key = newKey(readOnly),
    holder = randomBytes(8).readBigInt64BE(),
  }: KeyTerms = {},
) {
  const insert = db.kysely.insertInto('api_keys').values({
    name,
    prefix: visiblePrefix(key) ?? '',
    hash: hashKey(key),
    created_at: db.engine.now,
    expires_at: lifetime === undefined ? null : after(db, lifetime),
    read_only: readOnly ? 1n : 0n,
    holder,
  })
  const { insertId } = await execute(db, insert)
  if (insertId === undefined) throw new Error('The database returned no id for a new API key')
  return { id: insertId, key }
}

/** Returns the key that it creates if the embedded database never had one. On MySQL only the operator creates keys. */
export async function createFirstKey(db: RootDatabase): Promise<string | undefined> {
  if (!db.engine.isInProcess || (await hasKeys(db))) return undefined
  return (await createKeyIfNone(db, 'first key'))?.key
}

/**
 * Creates a key as `createKey` does if the database never had one, and returns undefined if it had. Of several
 * concurrent calls one creates a key. Throws LockedError if others hold the lock of the database for a minute.
 */
export async function createKeyIfNone(db: RootDatabase, name: string, terms?: KeyTerms) {
  return await underLock(db, async (session) =>
    (await hasKeys(session)) ? undefined : await createKey(session, name, terms),
  )
}

const hasKeys = async (db: Database): Promise<boolean> =>
  (await execute(db, db.kysely.selectFrom('api_keys').select('id').limit(1))).rows.length > 0

/**
 * Creates this key as `createKey` does unless the database has it, and returns its id and its state: `new`,
 * `working`, `expired` or `revoked`. Throws LockedError if others hold the lock of the database for a minute.
 */
export async function bringKey(db: RootDatabase, name: string, terms: KeyTerms & { key: string }) {
  return await underLock(db, async (session) => {
    const find = session.kysely.selectFrom('api_keys').where('hash', '=', hashKey(terms.key))
    const { rows } = await execute(session, find.select(['id', stateOf(session).as('state')]))
    return rows[0] ?? { id: (await createKey(session, name, terms)).id, state: 'new' }
  })
}

/** When a key ends by itself: at its expiry, or after its grace period. Null for never. */
const END = sql<bigint | null>`
  case
    when grace_until < expires_at then grace_until
    else coalesce(expires_at, grace_until)
  end`

/** The state of a key by the clock of the database, which does not matter once it is revoked. */
const stateOf = ({ engine }: Builder) => sql<string>`
  case
    when revoked_at is not null then 'revoked'
    when ${END} <= ${engine.now} then 'expired'
    else 'working'
  end`

/** Returns all keys in the order of their creation, the ended ones included. */
export async function listKeys(db: Database) {
  const all = db.kysely.selectFrom('api_keys').selectAll()
  const list = all.select([END.as('end'), stateOf(db).as('state')]).orderBy('id')
  const { rows } = await execute(db, list)
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    state: row.state,
    readOnly: row.read_only !== 0n,
    createdAt: dateOf(row.created_at),
    /** When the key expires, or its grace period after a rotation ends. */
    expiresAt: dateOf(row.end),
    revokedAt: dateOf(row.revoked_at),
    lastUsedAt: dateOf(row.last_used_at),
  }))
}

// The times of a Date end 8.64e15 milliseconds before and after 1970. A column may have others.
const dateOf = (time: bigint | null) =>
  time === null ? undefined : new Date(Math.max(-8.64e15, Math.min(Number(time), 8.64e15)))

/**
 * Creates a key with the name, rights, lifetime and holder of a working one. The old key works for `grace` more
 * milliseconds, or less if it ends earlier; 0 revokes it. Returns undefined if no working key has this id.
 */
export async function rotateKey(db: RootDatabase, id: bigint, grace: number) {
  const end = after(db, grace)
  return await inTransaction(db, async (transaction) => {
    // First, because this locks the row: a concurrent rotation or revocation waits.
    const ending = transaction.kysely
      .updateTable('api_keys')
      .set(
        grace === 0
          ? { revoked_at: db.engine.now }
          : { grace_until: sql`case when grace_until < ${end} then grace_until else ${end} end` },
      )
      .where('id', '=', id)
      .where(stateOf(db), '=', 'working')
    if ((await execute(transaction, ending)).numAffectedRows === 0n) return undefined
    const find = transaction.kysely
      .selectFrom('api_keys')
      .select(['name', 'created_at', 'expires_at', 'read_only', 'holder'])
      .where('id', '=', id)
    const [old] = (await execute(transaction, find)).rows
    if (!old) return undefined
    return await createKey(transaction, old.name, {
      lifetime: old.expires_at === null ? undefined : Number(old.expires_at - old.created_at),
      readOnly: old.read_only !== 0n,
      holder: old.holder ?? id,
    })
  })
}

/** Revokes a key, whatever a clock says of its end. Returns false if it is revoked, or none has this id. */
export async function revokeKey(db: Database, id: bigint): Promise<boolean> {
  const revocation = db.kysely
    .updateTable('api_keys')
    .set({ revoked_at: db.engine.now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
  return (await execute(db, revocation)).numAffectedRows === 1n
}

/** Returns the working key with a hash. Throws DatabaseUnavailableError, and the reason of the deadline. */
export async function findKey(db: Database, hash: string, deadline: Deadline) {
  const row = await db.runner.run(keyByHash, hash, deadline)
  if (!row) return undefined
  return {
    keyId: row.id,
    name: row.name,
    holder: row.holder ?? row.id,
    readOnly: row.read_only !== 0n,
    /** Milliseconds that the key still works, from the look-up on; Infinity without an end. */
    left: row.end === null ? Number.POSITIVE_INFINITY : Number(row.end - row.now),
  }
}

type Row = Pick<Selectable<ApiKeysTable>, 'id' | 'name' | 'hash' | 'holder' | 'read_only'>
const keyByHash = lookUp<string, Row & { end: bigint | null; now: bigint }>({
  select: (db, values) => {
    const hashes = values.map((value) => value((hash) => hash))
    return db.kysely
      .selectFrom('api_keys')
      .where('hash', 'in', hashes)
      .where(stateOf(db), '=', 'working')
      .select(['id', 'name', 'hash', 'holder', 'read_only', END.as('end'), db.engine.now.as('now')])
  },
  identityOf: (key) => (typeof key === 'string' ? key : key.hash),
})

/** Records that keys were used, by their ids: the time is that of this record. */
export async function recordUses(db: Database, keyIds: bigint[], deadline: Deadline) {
  const update = db.kysely.updateTable('api_keys').set({ last_used_at: db.engine.now })
  for (let from = 0; from < keyIds.length; from += MAX_USES) {
    await execute(db, update.where('id', 'in', keyIds.slice(from, from + MAX_USES)), deadline)
  }
}

/** An expression for the time in so many milliseconds. */
const after = ({ engine }: Builder, duration: number) =>
  sql<bigint>`${engine.now} + ${BigInt(duration)}`
