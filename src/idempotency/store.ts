/** The store of Idempotency-Keys, with which a request takes effect only once. */
import { hash as hashOf } from 'node:crypto'
import { parse, stringify } from 'devalue'
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import { inSharedTransaction } from '../../db/coalesce/coalesce.ts'
import { inserts } from '../../db/coalesce/inserts.ts'
import { lookUp } from '../../db/coalesce/lookup.ts'
import type { Deadline } from '../../db/deadline.ts'
import { now } from '../../db/engine.ts'
import { DatabaseUnavailableError, DuplicateError, LockedError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import { execute, type Value } from '../../db/statement.ts'
import type { Database, Tables } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'
import { startCleanup } from './cleanup.ts'

/** A request with a key, which is valid for the holder of the API key only. */
interface OnceRequest {
  holder: bigint
  key: string
  operation: string
  /** The parsed input, with its fields in the order of the schema. */
  input: unknown
}

/** The output of this request or of the first one with the key, or the name of the error. */
type Outcome<Output> = { output: Output } | 'keyRunning' | 'keyUsed'

/** Returns the output, with the stores of a transaction. */
export type Make<Stores, Output> = (stores: Stores, deadline: Deadline) => Promise<Output>

export type Idempotency<Stores> = ReturnType<typeof createIdempotency<Stores>>

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

  /** Stores the key after the work, which saves a statement; returns undefined if another call failed. */
  function runShared<Output>(row: NewRow, deadline: Deadline, make: Make<Stores, Output>) {
    const work = async (transaction: Database, deadline: Deadline) => {
      const output = await make(createStores(transaction), deadline)
      await storeKey(transaction, row, stringify(output), deadline)
      return { output }
    }
    return inSharedTransaction(db, work, deadline)
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
      await storeKey(transaction, row, '', deadline)
      const output = await make(createStores(transaction), deadline)
      const update = transaction.updateTable('idempotency_keys').set({ answer: stringify(output) })
      const ofRow = update.where('api_key_id', '=', row.holder).where('key_hash', '=', row.hash)
      await execute(transaction, ofRow, deadline)
      return { output }
    }
    return inTransaction(db, work)
  }

  return {
    /**
     * Runs `make` in a transaction that also stores the key and the output. If the key was used before,
     * it returns the output of that request, `keyRunning` while that request is running, or `keyUsed` if
     * that was another request. With `oneStatement`, concurrent calls share a transaction. Makes up to
     * three attempts, which are safe because of the key. Throws the errors of `make`, and
     * DatabaseUnavailableError.
     */
    async once<Output>(
      { holder, key, operation, input }: OnceRequest,
      deadline: Deadline,
      make: Make<Stores, Output>,
      { oneStatement = false }: { oneStatement?: boolean } = {},
    ): Promise<Outcome<Output>> {
      const name = `${holder} ${key}`
      if (running.has(name)) return 'keyRunning'
      const hash = hashOf('sha256', key)
      const row = { holder, hash, operation, fingerprint: fingerprintOf(input) }
      running.add(name)
      try {
        for (let mayShare = oneStatement; ; mayShare = false) {
          const known = await findRow(db, row, deadline)
          if (known && known.now - known.created_at < lifetime) {
            const isSame = known.operation === operation && known.fingerprint === row.fingerprint
            // An output of the same operation.
            return isSame ? { output: parse(known.answer) as Output } : 'keyUsed'
          }
          const isShared = mayShare && !known
          let attempts = 0
          const run = () => {
            attempts++
            return isShared
              ? runShared(row, deadline, make)
              : runAlone(row, deadline, make, known?.id)
          }
          try {
            const outcome = await retry(run, { repeatable: true, deadline })
            if (outcome) return outcome
          } catch (error) {
            if (error instanceof TakenError) {
              if (error.cause instanceof LockedError) return 'keyRunning'
            } else if (!isShared || attempts === 1 || error instanceof DatabaseUnavailableError) {
              throw error
            }
          }
          // Another call of the shared transaction failed; or the answer to a commit was lost, and a
          // later attempt found the key taken: by that commit, or by another request. The row tells which.
        }
      } finally {
        running.delete(name)
      }
    },
    /** Stops the regular removal of keys that are older than the lifetime. */
    stop: startCleanup(db, lifetime, log),
  }
}

/** Another request has stored the same key, or is about to; this one has no effect. */
class TakenError extends Error {}

interface NewRow {
  holder: bigint
  hash: string
  operation: string
  fingerprint: string
}

const findRow = lookUp<NewRow, Selectable<Tables['idempotency_keys']> & { now: bigint }>({
  select: (db, values) => {
    const all = db.selectFrom('idempotency_keys').selectAll().select(now(db).as('now'))
    const columnsOf = (value: Value<NewRow>) => ({
      api_key_id: value(({ holder }) => holder),
      key_hash: value(({ hash }) => hash),
    })
    return all.where((eb) => eb.or(values.map((value) => eb.and(columnsOf(value)))))
  },
  nameOf: (key) =>
    'hash' in key ? `${key.holder} ${key.hash}` : `${key.api_key_id} ${key.key_hash}`,
})

const insertRow = inserts('idempotency_keys', (row: NewRow & { answer: string }, db) => ({
  api_key_id: row.holder,
  key_hash: row.hash,
  operation: row.operation,
  fingerprint: row.fingerprint,
  answer: row.answer,
  created_at: now(db),
}))

/** Stores the key. Throws TakenError if it is taken: no other unique index can reject the row. */
async function storeKey(
  transaction: Database,
  row: NewRow,
  answer: string,
  deadline: Deadline,
): Promise<void> {
  try {
    await insertRow(transaction, { ...row, answer }, deadline)
  } catch (error) {
    const isTaken = error instanceof DuplicateError || error instanceof LockedError
    throw isTaken ? new TakenError(undefined, { cause: error }) : error
  }
}

/** Returns the SHA-256 of an input. The names of its fields are included, to distinguish omitted ones. */
function fingerprintOf(input: unknown): string {
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)
  return hashOf('sha256', JSON.stringify(input, plain))
}
