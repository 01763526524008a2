/** The store of Idempotency-Keys, with which a request takes effect only once. */
import { hash as hashOf } from 'node:crypto'
import { parse, stringify } from 'devalue'
import type { Kysely, Selectable } from 'kysely'
import type { Logger } from 'pino'
import type { Database } from '../../db/database.ts'
import type { Deadline } from '../../db/deadline.ts'
import { engineOf, now } from '../../db/engine.ts'
import { ConflictError, DuplicateError, LockedError } from '../../db/errors.ts'
import type { Value } from '../../db/plan.ts'
import { inserts } from '../../db/plans/inserts.ts'
import { lookUp } from '../../db/plans/lookup.ts'
import { retry } from '../../db/retry.ts'
import { execute } from '../../db/statement.ts'
import type { IdempotencyKeysTable, Tables } from '../../db/tables.ts'
import { inTransaction, shareTransaction } from '../../db/transaction.ts'
import { problem } from '../errors/problem.ts'
import { startCleanup } from './cleanup.ts'

/** Returns the output, with the stores of a transaction. */
export type Make<Stores, Output> = (stores: Stores, deadline: Deadline) => Promise<Output>

export type Idempotency<Stores> = Pick<ReturnType<typeof createIdempotency<Stores>>, 'once'>

/**
 * Returns the store of the keys of a database, which are valid for `lifetime` milliseconds.
 * `createStores` returns the stores of a transaction.
 */
export function createIdempotency<Stores>(
  db: Database,
  createStores: (db: Database) => Stores,
  lifetime: number,
  log: Logger,
) {
  const running = new Set<string>()
  const stopCleanup = startCleanup(db, lifetime, log)

  /** Stores the key after the work, which saves a statement. */
  async function runShared<Output>(row: NewRow, deadline: Deadline, make: Make<Stores, Output>) {
    const work = async (transaction: Database, ofAll: Deadline) => {
      const output = await make(createStores(transaction), ofAll)
      await storeKey(transaction, row, stringify(output), ofAll)
      return output
    }
    return await shareTransaction(db, work, deadline)
  }

  /** Stores the key before the work, so that no work begins while another instance uses the key. */
  function runAlone<Output>(
    row: NewRow,
    deadline: Deadline,
    make: Make<Stores, Output>,
    expiredId: bigint | undefined,
  ) {
    const work = async (transaction: Database) => {
      if (expiredId !== undefined) {
        const remove = transaction.deleteFrom('idempotency_keys').where('id', '=', expiredId)
        await execute(transaction, remove, deadline)
      }
      const id = await storeKey(transaction, row, '', deadline)
      const output = await make(createStores(transaction), deadline)
      const update = transaction.updateTable('idempotency_keys').set({ answer: stringify(output) })
      await execute(transaction, update.where('id', '=', id), deadline)
      return output
    }
    return inTransaction(db, work, deadline)
  }

  return {
    /**
     * Runs `make` in a transaction that also stores the key of the request, for this holder of an API key
     * alone, and the output. If the key was used before, returns the output of that request; throws CONFLICT
     * while that request is running, and UNPROCESSABLE_CONTENT if that was another request. The fields of the
     * parsed input are in the order of the schema. With `oneStatement`, concurrent calls share a transaction.
     * Makes up to three attempts, and up to six in conflicts with other transactions, which are safe
     * because of the key. Throws the errors of `make`, and DatabaseUnavailableError.
     */
    async once<Output>(
      request: { holder: bigint; key: string; operation: string; input: unknown },
      deadline: Deadline,
      make: Make<Stores, Output>,
      { oneStatement = false }: { oneStatement?: boolean } = {},
    ): Promise<Output> {
      const row = {
        api_key_id: request.holder,
        key_hash: hashOf('sha256', request.key),
        operation: request.operation,
        fingerprint: fingerprintOf(request.input),
      }
      const name = nameOf(row)
      if (running.has(name)) throw problem('keyRunning')
      running.add(name)
      let mayShare = oneStatement
      // After an attempt whose commit was not answered, and after one that found the key taken, the row
      // tells what has happened.
      const attempt = async (): Promise<Output> => {
        const known = await findKey(db, row, deadline)
        if (known && known.now - known.created_at < lifetime) {
          const isSame = known.operation === row.operation && known.fingerprint === row.fingerprint
          if (!isSame) throw problem('keyUsed')
          return parse(known.answer) as Output // an output of the same operation
        }
        if (known || !mayShare) return await runAlone(row, deadline, make, known?.id)
        mayShare = false
        return await runShared(row, deadline, make)
      }
      const repeatable = () =>
        attempt().catch((error) => {
          throw error instanceof KeyTakenError ? new ConflictError(error, true) : error
        })
      try {
        return await retry(repeatable, { repeatable: true, deadline })
      } finally {
        running.delete(name)
      }
    },
    /** Stops the regular removal of keys that are older than the lifetime. */
    stop: stopCleanup,
  }
}

/** Another request has stored the key. The works beside this one have no part in that. */
class KeyTakenError extends Error {}

type NewRow = Omit<IdempotencyKeysTable, 'id' | 'answer' | 'created_at'>
type Key = Pick<NewRow, 'api_key_id' | 'key_hash'>

function nameOf({ api_key_id, key_hash }: Key): string {
  return `${api_key_id} ${key_hash}`
}

/**
 * Returns the row of a key, if there is one. Throws CONFLICT if another instance is about to store it, which has
 * no answer yet: an insert would wait for that one, and all that share its transaction with it.
 */
async function findKey(db: Database, key: Key, deadline: Deadline): Promise<KeyRow | undefined> {
  try {
    return await db.lanes.call(keyWithoutWait, key, deadline)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    // It may be the look-up of another repetition that had the lock.
    const row = await db.lanes.call(visibleKey, key, deadline)
    if (row) return row
  }
  try {
    // If that was a lock against reads, too, the look-up of what is visible has waited for its end.
    return await db.lanes.call(keyWithoutWait, key, deadline)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    // Behind the lock of the whole table no request is known to run: the insert waits for its end.
    if (await isTableLocked(db, deadline)) return undefined
    throw problem('keyRunning')
  }
}

async function isTableLocked(db: Database, deadline: Deadline): Promise<boolean> {
  const noKey = db.selectFrom('idempotency_keys').select('id').where('id', '=', 0n)
  try {
    await execute(db, engineOf(db).withoutWait(noKey), deadline)
    return false
  } catch (error) {
    if (error instanceof LockedError) return true
    throw error
  }
}

type KeyRow = Selectable<IdempotencyKeysTable> & { now: bigint }

const visibleKey = lookUp<Key, KeyRow>({ select: selectKeys, nameOf })

const keyWithoutWait = {
  ...lookUp<Key, KeyRow>({
    select: (db, values) => engineOf(db).withoutWait(selectKeys(db, values)),
    nameOf,
  }),
  // The keys that no other instance stores are found without it.
  isOfOne: (error: unknown) => error instanceof LockedError,
}

function selectKeys(db: Kysely<Tables>, values: Value<Key>[]) {
  const columnsOf = (value: Value<Key>) => ({
    api_key_id: value(({ api_key_id }) => api_key_id),
    key_hash: value(({ key_hash }) => key_hash),
  })
  // With another index, a look-up would meet the rows of other keys.
  return db
    .selectFrom(engineOf(db).forceIndex('idempotency_keys', 'idempotency_keys_key'))
    .select(['id', 'api_key_id', 'key_hash', 'operation', 'fingerprint', 'answer', 'created_at'])
    .select(now(db).as('now'))
    .where((eb) => eb.or(values.map((value) => eb.and(columnsOf(value)))))
}

const newKey = inserts('idempotency_keys', (value: Value<NewRow & { answer: string }>, db) => ({
  api_key_id: value((row) => row.api_key_id),
  key_hash: value((row) => row.key_hash),
  operation: value((row) => row.operation),
  fingerprint: value((row) => row.fingerprint),
  answer: value((row) => row.answer),
  created_at: now(db),
}))

/**
 * Stores the key, and returns the id of its row. If another request has stored the key, which alone is
 * unique here, throws KeyTakenError; if that one is running, CONFLICT.
 */
async function storeKey(
  transaction: Database,
  row: NewRow,
  answer: string,
  deadline: Deadline,
): Promise<bigint> {
  try {
    return await transaction.lanes.call(newKey, { ...row, answer }, deadline)
  } catch (error) {
    if (error instanceof LockedError) throw problem('keyRunning')
    throw error instanceof DuplicateError ? new KeyTakenError(error.message) : error
  }
}

/** Returns the SHA-256 of an input. The names of its fields are included, to distinguish omitted ones. */
function fingerprintOf(input: unknown): string {
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)
  return hashOf('sha256', JSON.stringify(input, plain))
}
