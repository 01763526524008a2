/** Mutations with an Idempotency-Key, each of which takes effect once. */
import { parse, stringify } from 'devalue'
import { type Database, inTransaction, pauseOrThrow, type RootDatabase } from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import type { Call, Creation, KeyedWrites, Work } from '../procedure/call.ts'
import { outputOfRow, outputOfWork } from '../procedure/write.ts'
import { keyOf } from './header.ts'
import * as idempotencyKeys from './store.ts'

/** Makes one attempt of a mutation, which stores the key. */
type Attempt<Output> = (request: idempotencyKeys.KeyedRequest) => Promise<Output>

/** The mutations of a process, with the keys in its database. */
export class DatabaseKeyedWrites<Stores> implements KeyedWrites {
  readonly #db: RootDatabase
  readonly #createStores: (db: Database) => Stores
  readonly #lifetime: number
  /** The identities of the keys in use in this process. An array: V8 keeps the garbage of a Set that loses what it gains. */
  readonly #running: string[] = []

  /** The keys are valid for `lifetime` milliseconds. `createStores` returns the stores of a transaction. */
  constructor(db: RootDatabase, createStores: (db: Database) => Stores, lifetime: number) {
    this.#db = db
    this.#createStores = createStores
    this.#lifetime = lifetime
  }

  /** The key is stored before the work, so that none begins while another instance uses the key. */
  runWork<Context extends Call, Output>(
    call: Context,
    work: Work<Context, Output>,
  ): Promise<Output> {
    const { deadline } = call
    return this.#once(call, (request) =>
      inTransaction(
        this.#db,
        async (transaction) => {
          const id = await idempotencyKeys.insert(transaction, request, deadline)
          const output = await outputOfWork(call, this.#createStores(transaction), work)
          await idempotencyKeys.setAnswer(transaction, id, stringify(output), deadline)
          return output
        },
        deadline,
      ),
    )
  }

  create<Input, Output>(
    call: Call,
    creation: Creation<Input, Output>,
    input: Input,
  ): Promise<Output> {
    return this.#once(call, async (request) => {
      let output: Output | undefined // that of the latest `withAnswer`, inside the transaction
      const withAnswer = (id: bigint) => {
        output = outputOfRow(call, creation, id, input)
        return { ...request, answer: stringify(output) }
      }
      await creation.insert(call, input, { table: idempotencyKeys.table, withAnswer })
      return output as Output // of the row that was committed
    })
  }

  /** Returns the output of the attempts, or of the call that has stored the key. */
  async #once<Output>(call: Call, attempt: Attempt<Output>): Promise<Output> {
    const { deadline } = call
    const request = idempotencyKeys.requestOf(call, keyOf(call))
    const identity = idempotencyKeys.identityOf(request)
    if (this.#running.includes(identity)) throw problem('keyRunning')
    this.#running.push(identity)
    try {
      for (let count = 0; ; count++) {
        // The row says whether an earlier attempt, or another instance, was committed. The look-up has attempts of its own.
        const stored = await idempotencyKeys.find(this.#db, request, deadline)
        if (stored && stored.age < this.#lifetime) return outputOfStored(stored, request) as Output // of the same operation
        try {
          if (stored) await idempotencyKeys.remove(this.#db, stored.id, deadline)
          return await attempt(request)
        } catch (error) {
          await pauseOrThrow(count, error, true, deadline)
        }
      }
    } finally {
      this.#running.splice(this.#running.indexOf(identity), 1)
    }
  }
}

/** Returns the output of the call that has stored the key. Throws UNPROCESSABLE_CONTENT if that was another request. */
function outputOfStored(
  stored: idempotencyKeys.StoredKey,
  request: idempotencyKeys.KeyedRequest,
): unknown {
  const isSame =
    stored.operation === request.operation && stored.fingerprint === request.fingerprint
  if (!isSame) throw problem('keyUsed')
  return parse(stored.answer)
}
