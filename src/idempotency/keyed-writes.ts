/** Mutations with an Idempotency-Key, each of which takes effect once. */
import { parse, stringify } from 'devalue'
import {
  type Database,
  inTransaction,
  KeyTakenError,
  pauseOrThrow,
  type RootDatabase,
} from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import type { Call, Creation, KeyedWrites, Work } from '../procedure/call.ts'
import { outputOfRow, outputOfWork } from '../procedure/write.ts'
import { keyOf } from './header.ts'
import * as idempotencyKeys from './store.ts'

/** Makes one attempt of a mutation. `expired` is the id of the row of the key, which is removed. */
type Attempt<Output> = (key: idempotencyKeys.NewKey, expired: bigint | undefined) => Promise<Output>

/** The mutations of a process, with the keys in its database. */
export class DatabaseKeyedWrites<Stores> implements KeyedWrites {
  readonly #db: RootDatabase
  readonly #createStores: (db: Database) => Stores
  readonly #lifetime: number
  /** The names of the keys in use in this process. An array: V8 keeps the garbage of a Set that loses what it gains. */
  readonly #running: string[] = []

  /** The keys are valid for `lifetime` milliseconds. `createStores` returns the stores of a transaction. */
  constructor(db: RootDatabase, createStores: (db: Database) => Stores, lifetime: number) {
    this.#db = db
    this.#createStores = createStores
    this.#lifetime = lifetime
  }

  readonly keyOf = keyOf

  /** The key is stored before the work, so that none begins while another instance uses the key. */
  runWork<Context extends Call, Output>(
    call: Context,
    text: string,
    work: Work<Context, Output>,
  ): Promise<Output> {
    const { deadline } = call
    return this.#once(call, text, (key, expired) =>
      inTransaction(
        this.#db,
        async (transaction) => {
          if (expired) await idempotencyKeys.remove(transaction, expired, deadline)
          const id = await idempotencyKeys.insert(transaction, key, deadline)
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
    text: string,
    creation: Creation<Input, Output>,
    input: Input,
  ): Promise<Output> {
    return this.#once(call, text, async (key, expired) => {
      const answerOf = (id: bigint) => stringify(outputOfRow(call, creation, id, input))
      const withAnswer = (id: bigint) => ({ ...key, answer: answerOf(id) })
      const { table } = idempotencyKeys
      const id = await creation.insert(call, input, { table, expired, withAnswer })
      return outputOfRow(call, creation, id, input) // the same as was stored, which is text by now
    })
  }

  /** Returns the output of the attempts, or of the call that has stored the key. */
  async #once<Output>(call: Call, text: string, attempt: Attempt<Output>): Promise<Output> {
    const { caller, deadline, operation, progress } = call
    const key = idempotencyKeys.newKeyOf(caller.holder, text, operation, progress.input)
    const name = idempotencyKeys.identityOf(key)
    if (this.#running.includes(name)) throw problem('keyRunning')
    this.#running.push(name)
    try {
      for (let count = 0; ; count++) {
        // Before each attempt: the row says whether an earlier one, or another instance, was committed. The look-up
        // has attempts of its own.
        const known = await idempotencyKeys.find(this.#db, key, deadline)
        if (known && known.age < this.#lifetime) return outputOfStored(known, key) as Output // of the same operation
        try {
          return await attempt(key, known?.id)
        } catch (error) {
          const isTaken = error instanceof KeyTakenError
          if (!isTaken || count > 0) await pauseOrThrow(count, error, true, deadline)
        }
      }
    } finally {
      this.#running.splice(this.#running.indexOf(name), 1)
    }
  }
}

/** Returns the output of the call that has stored the key. Throws UNPROCESSABLE_CONTENT if that was another request. */
function outputOfStored(stored: idempotencyKeys.StoredKey, key: idempotencyKeys.NewKey): unknown {
  const isSame = stored.operation === key.operation && stored.fingerprint === key.fingerprint
  if (!isSame) throw problem('keyUsed')
  return parse(stored.answer)
}
