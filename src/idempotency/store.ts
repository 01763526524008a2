/** The store of the receipts of requests with an Idempotency-Key: their table and its statements. */
import { hash as hashOf } from 'node:crypto'
import { stringify } from 'devalue'
import type { Generated } from 'kysely'
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
  removals,
  type Value,
  valuesOf,
} from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import type { Call } from '../procedure/call.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    idempotency_keys: ReceiptsTable
  }
}

/** The receipts. A repetition of a request gets the answer in its receipt. */
interface ReceiptsTable {
  id: Generated<bigint>
  /**
   * The `holder` of the API key, which the keys that follow from one another by rotation share; or `NO_API_KEY`. The name
   * of the column is old, and wrong: it holds no id of a key.
   */
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

type Receipt = Omit<ReceiptsTable, 'id' | 'created_at'>

/** The plan that stores a receipt. */
export const insertPlan = inserts('idempotency_keys', (value: Value<Receipt>, { engine }) => ({
  ...valuesOf(value, 'api_key_id', 'key_hash', 'operation', 'fingerprint', 'answer'),
  created_at: engine.now,
}))

/** A request with an Idempotency-Key, as its receipt has it. */
export type KeyedRequest = Omit<Receipt, 'answer'>

/** A receipt with its id, and its age in milliseconds. */
export type StoredReceipt = Receipt & { id: bigint; age: bigint }

/** What a receipt is found by. */
type Identity = Pick<Receipt, 'api_key_id' | 'key_hash'>

/** The number for holders without an API key: no API key has this holder. The holder itself is part of `key_hash` then. */
const NO_API_KEY = 0n

/**
 * Returns the request of a call with this key and its scope. The fields of the checked input are in the order of the
 * schema. Throws TypeError for an input that has no JSON.
 */
export const requestOf = (
  { caller: { holder }, operation: { name, rest }, progress: { input } }: Call,
  scopedKey: string,
): KeyedRequest => ({
  api_key_id: typeof holder === 'bigint' ? holder : NO_API_KEY,
  key_hash: hashOf('sha256', scopedKey),
  operation: name,
  // tRPC alone has values that are the same in JSON, such as a Map and a Set, or 7n and "7" for one field.
  fingerprint: hashOf('sha256', rest ? jsonOf(input) : stringify(input)),
})

/** Returns the identity as a text, which no two receipts have. */
export function identityOf({ api_key_id, key_hash }: Identity): string {
  return `${api_key_id} ${key_hash}`
}

/**
 * Returns the receipt of a request, if there is one. Throws CONFLICT if another instance is storing it now:
 * an insert would wait for that one, and all that share its transaction with it.
 */
export async function find(
  db: Database,
  identity: Identity,
  deadline: Deadline,
): Promise<StoredReceipt | undefined> {
  try {
    return await db.runner.run(lockingLookUp, identity, deadline)
  } catch (error) {
    if (error instanceof LockedError) return await findLocked(db, identity, deadline)
    throw error
  }
}

async function findLocked(
  db: Database,
  identity: Identity,
  deadline: Deadline,
): Promise<StoredReceipt | undefined> {
  // It may be the look-up of another repetition that had the lock.
  const receipt = await db.runner.run(plainLookUp, identity, deadline)
  if (receipt) return receipt
  try {
    // If that was a lock against reads, too, the plain look-up has waited for its end.
    return await db.runner.run(lockingLookUp, identity, deadline)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    // Behind the lock of the whole table no request is known to run: the insert waits for its end.
    if (await isTableLocked(db, deadline)) return undefined
    throw problem('keyRunning')
  }
}

/** Returns whether a look-up meets a lock where there is no receipt. */
async function isTableLocked(db: Database, deadline: Deadline): Promise<boolean> {
  try {
    await db.runner.run(lockingLookUp, { api_key_id: NO_API_KEY, key_hash: '' }, deadline)
    return false
  } catch (error) {
    if (error instanceof LockedError) return true
    throw error
  }
}

const plainLookUp = lookUp<Identity, StoredReceipt>({ select, identityOf })

/**
 * The look-up that also meets a receipt whose insert is not committed: it locks, for its own statement alone, and throws
 * LockedError where it would wait.
 */
const lockingLookUp = {
  ...lookUp<Identity, StoredReceipt>({
    select: (db, identities) => db.engine.lockAtOnce(select(db, identities)),
    identityOf,
  }),
  // The receipts that no other instance is storing are found without the one that is.
  blamesOne: (error: unknown) => error instanceof LockedError,
}

function select({ kysely, engine }: Builder, identities: Value<Identity>[]) {
  // With another index, a look-up would meet the rows of other keys.
  return kysely
    .selectFrom(engine.forceIndex('idempotency_keys', 'idempotency_keys_key'))
    .select(['id', 'api_key_id', 'key_hash', 'operation', 'fingerprint', 'answer'])
    .select((eb) => eb(engine.now, '-', eb.ref('created_at')).as('age'))
    .where((eb) =>
      eb.or(identities.map((value) => eb.and(valuesOf(value, 'api_key_id', 'key_hash')))),
    )
}

/**
 * Stores the receipt of a request without an answer, and returns its id. Throws KeyTakenError if another request has
 * stored one of the same key, which alone is unique here; if that one is running, CONFLICT.
 */
export async function insert(
  transaction: Database,
  keyed: KeyedRequest,
  deadline: Deadline,
): Promise<bigint> {
  try {
    return await transaction.runner.run(insertPlan, { ...keyed, answer: '' }, deadline)
  } catch (error) {
    if (error instanceof LockedError) throw problem('keyRunning')
    throw error instanceof DuplicateError ? new KeyTakenError(error, true) : error
  }
}

/** Sets the answer of a receipt that was inserted without one. */
export async function setAnswer(
  transaction: Database,
  id: bigint,
  answer: string,
  deadline: Deadline,
): Promise<void> {
  const update = transaction.kysely.updateTable('idempotency_keys').set({ answer })
  await execute(transaction, update.where('id', '=', id), deadline)
}

/** Removes a receipt that has expired. */
export const remove = (db: Database, id: bigint, deadline: Deadline): Promise<void> =>
  db.runner.run(removal, id, deadline)

const removal = removals('idempotency_keys')

/** Returns the JSON of an input, as earlier releases have hashed it. The names of its fields distinguish omitted ones. */
function jsonOf(input: unknown): string {
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)
  return `${JSON.stringify(input, plain)}` // of a procedure without an input undefined
}
