/** The store of Idempotency-Keys: their table and its statements. */
import { hash as hashOf } from 'node:crypto'
import { stringify } from 'devalue'
import type { Generated, Selectable } from 'kysely'
import {
  type Builder,
  type Database,
  type Deadline,
  DuplicateError,
  execute,
  inserts,
  KeyTakenError,
  LockedError,
  lookUp,
  retry,
  type Value,
} from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import type { Call } from '../procedure/call.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    idempotency_keys: IdempotencyKeysTable
  }
}

/** The output of a request with an Idempotency-Key, which a repetition of the request returns. */
interface IdempotencyKeysTable {
  id: Generated<bigint>
  /** The `holder` of the API key, not its id: the keys that follow from one another by rotation share it. */
  api_key_id: bigint
  /** SHA-256 of the Idempotency-Key, and of the actor and a holder in text where there are any: 64 hexadecimal digits. */
  key_hash: string
  /** The name of the procedure. */
  operation: string
  /** SHA-256 of the input, 64 hexadecimal digits. */
  fingerprint: string
  /** The output in devalue's encoding; empty only within the transaction of the request. */
  answer: string
  created_at: bigint
}

/** A request with an Idempotency-Key, as its row has it. */
export type KeyedRequest = Omit<IdempotencyKeysTable, 'id' | 'answer' | 'created_at'>

/** The row of a key, with its age in milliseconds. */
export type StoredKey = Omit<Selectable<IdempotencyKeysTable>, 'created_at'> & { age: bigint }

/** What a row is found by. */
type Key = Pick<KeyedRequest, 'api_key_id' | 'key_hash'>

/** The number of all holders without an API key, whose keys have the holder. Those of API keys are random. */
const NO_API_KEY = 0n

/**
 * Returns the request of a call with this key. The fields of the checked input are in the order of the schema. Throws
 * TypeError for an input that has no JSON.
 */
export const requestOf = (
  { caller: { holder }, operation: { name, rest }, progress: { input } }: Call,
  key: string,
): KeyedRequest => ({
  api_key_id: typeof holder === 'bigint' ? holder : NO_API_KEY,
  key_hash: hashOf('sha256', key),
  operation: name,
  // tRPC alone has values that are the same in JSON, such as a Map and a Set, or 7n and "7" for one field.
  fingerprint: hashOf('sha256', rest ? jsonOf(input) : stringify(input)),
})

/** Returns the identity of a row, of which there is one. */
export function identityOf({ api_key_id, key_hash }: Key): string {
  return `${api_key_id} ${key_hash}`
}

/**
 * Returns the row of a key, if there is one. Throws CONFLICT if another instance is storing the key now:
 * an insert would wait for that one, and all that share its transaction with it.
 */
export async function find(
  db: Database,
  key: Key,
  deadline: Deadline,
): Promise<StoredKey | undefined> {
  try {
    return await db.runner.run(keyWithoutWait, key, deadline)
  } catch (error) {
    if (error instanceof LockedError) return await findLocked(db, key, deadline)
    throw error
  }
}

async function findLocked(
  db: Database,
  key: Key,
  deadline: Deadline,
): Promise<StoredKey | undefined> {
  // It may be the look-up of another repetition that had the lock.
  const row = await db.runner.run(visibleKey, key, deadline)
  if (row) return row
  try {
    // If that was a lock against reads, too, the look-up of what is visible has waited for its end.
    return await db.runner.run(keyWithoutWait, key, deadline)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    // Behind the lock of the whole table no request is known to run: the insert waits for its end.
    if (await isTableLocked(db, deadline)) return undefined
    throw problem('keyRunning')
  }
}

function isTableLocked(db: Database, deadline: Deadline): Promise<boolean> {
  const noKey = db.kysely.selectFrom('idempotency_keys').select('id').where('id', '=', 0n)
  const attempt = async () => {
    try {
      await execute(db, db.engine.withoutWait(noKey), deadline)
      return false
    } catch (error) {
      if (error instanceof LockedError) return true
      throw error
    }
  }
  return retry(attempt, { repeatable: true, deadline })
}

const visibleKey = lookUp<Key, StoredKey>({ select: selectKeys, identityOf })

const keyWithoutWait = {
  ...lookUp<Key, StoredKey>({
    select: (db, values) => db.engine.withoutWait(selectKeys(db, values)),
    identityOf,
  }),
  // The keys that no other instance stores are found without it.
  blamesOne: (error: unknown) => error instanceof LockedError,
}

function selectKeys({ kysely, engine }: Builder, values: Value<Key>[]) {
  const columnsOf = (value: Value<Key>) => ({
    api_key_id: value(({ api_key_id }) => api_key_id),
    key_hash: value(({ key_hash }) => key_hash),
  })
  // With another index, a look-up would meet the rows of other keys.
  return kysely
    .selectFrom(engine.forceIndex('idempotency_keys', 'idempotency_keys_key'))
    .select(['id', 'api_key_id', 'key_hash', 'operation', 'fingerprint', 'answer'])
    .select((eb) => eb(engine.now, '-', eb.ref('created_at')).as('age'))
    .where((eb) => eb.or(values.map((value) => eb.and(columnsOf(value)))))
}

/** The table, and the plan that stores a key with its answer. */
export const table = {
  inserts: inserts(
    'idempotency_keys',
    (value: Value<KeyedRequest & { answer: string }>, { engine }) => ({
      api_key_id: value((row) => row.api_key_id),
      key_hash: value((row) => row.key_hash),
      operation: value((row) => row.operation),
      fingerprint: value((row) => row.fingerprint),
      answer: value((row) => row.answer),
      created_at: engine.now,
    }),
  ),
} as const

/**
 * Stores the key of a request without an answer, and returns the id of its row. Throws KeyTakenError if another request
 * has stored the key, which alone is unique here; if that one is running, CONFLICT.
 */
export async function insert(
  transaction: Database,
  request: KeyedRequest,
  deadline: Deadline,
): Promise<bigint> {
  try {
    return await transaction.runner.run(table.inserts, { ...request, answer: '' }, deadline)
  } catch (error) {
    if (error instanceof LockedError) throw problem('keyRunning')
    throw error instanceof DuplicateError ? new KeyTakenError(error, true) : error
  }
}

/** Sets the answer of a key that was inserted without one. */
export async function setAnswer(
  transaction: Database,
  id: bigint,
  answer: string,
  deadline: Deadline,
): Promise<void> {
  const update = transaction.kysely.updateTable('idempotency_keys').set({ answer })
  await execute(transaction, update.where('id', '=', id), deadline)
}

/** Removes a key that has expired. */
export async function remove(db: Database, id: bigint, deadline: Deadline): Promise<void> {
  await execute(db, db.kysely.deleteFrom('idempotency_keys').where('id', '=', id), deadline)
}

/** Returns the JSON of an input, as earlier releases have hashed it. The names of its fields distinguish omitted ones. */
function jsonOf(input: unknown): string {
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)
  return `${JSON.stringify(input, plain)}` // of a procedure without an input undefined
}
