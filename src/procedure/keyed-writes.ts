/** Mutations with an Idempotency-Key, each of which takes effect once. */
import { parse, stringify } from 'devalue'
import type { Database } from '../../db/database.ts'
import { ConflictError } from '../../db/errors.ts'
import { pauseAfter } from '../../db/retry.ts'
import { inTransaction, shareTransaction } from '../../db/transaction.ts'
import { problem } from '../errors/problem.ts'
import * as keys from '../idempotency/store.ts'
import type { Call, KeyedWrites, Stores, Work } from './call.ts'
import { checked } from './write.ts'

/** The mutations of a process, with the keys in its database. */
export class DatabaseKeyedWrites implements KeyedWrites {
  readonly #db: Database
  readonly #createStores: (db: Database) => Stores
  readonly #lifetime: number
  /** The names of the keys in use in this process. */
  readonly #running = new Set<string>()

  /** The keys are valid for `lifetime` milliseconds. `createStores` returns the stores of a transaction. */
  constructor(db: Database, createStores: (db: Database) => Stores, lifetime: number) {
    this.#db = db
    this.#createStores = createStores
    this.#lifetime = lifetime
  }

  async run<Output>(
    call: Call,
    text: string,
    work: Work<Output>,
    oneStatement: boolean,
  ): Promise<Output> {
    const { caller, operation, input, deadline } = call
    const key = keys.keyOf(caller.holder, text, operation.name, input)
    const name = keys.nameOf(key)
    if (this.#running.has(name)) throw problem('keyRunning')
    this.#running.add(name)
    let mayShare = oneStatement
    try {
      // After an attempt whose commit was not answered, and after one that found the key taken, the row
      // tells what has happened.
      for (let attempt = 0; ; attempt++) {
        try {
          const known = await keys.find(this.#db, key, deadline)
          if (known && known.age < this.#lifetime) return answerOf(known, key) as Output
          if (known || !mayShare) return await this.#runAlone(call, key, work, known)
          mayShare = false
          return await this.#runShared(call, key, work)
        } catch (error) {
          const isTaken = error instanceof keys.KeyTakenError
          await pauseAfter(
            attempt,
            isTaken ? new ConflictError(error, true) : error,
            true,
            deadline,
          )
        }
      }
    } finally {
      this.#running.delete(name)
    }
  }

  /** Stores the key after the work, which saves a statement. */
  async #runShared<Output>(call: Call, key: keys.NewKey, work: Work<Output>): Promise<Output> {
    return await shareTransaction(
      this.#db,
      async (transaction, ofAll) => {
        const output = await checked(call.inside(this.#createStores(transaction), ofAll), work)
        await keys.insert(transaction, key, stringify(output), ofAll)
        return output
      },
      call.deadline,
    )
  }

  /** Stores the key before the work, so that no work begins while another instance uses the key. */
  async #runAlone<Output>(
    call: Call,
    key: keys.NewKey,
    work: Work<Output>,
    expired: keys.StoredKey | undefined,
  ): Promise<Output> {
    const { deadline } = call
    return await inTransaction(
      this.#db,
      async (transaction) => {
        if (expired) await keys.remove(transaction, expired.id, deadline)
        const id = await keys.insert(transaction, key, '', deadline)
        const output = await checked(call.inside(this.#createStores(transaction), deadline), work)
        await keys.setAnswer(transaction, id, stringify(output), deadline)
        return output
      },
      deadline,
    )
  }
}

/** Returns the output of the request that has stored a key. Throws UNPROCESSABLE_CONTENT if that was another one. */
function answerOf(known: keys.StoredKey, key: keys.NewKey): unknown {
  const isSame = known.operation === key.operation && known.fingerprint === key.fingerprint
  if (!isSame) throw problem('keyUsed')
  return parse(known.answer) // an output of the same operation
}
