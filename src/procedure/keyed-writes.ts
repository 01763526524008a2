/** Mutations with an Idempotency-Key, each of which takes effect once. */
import { parse, stringify } from 'devalue'
import type { Database } from '../../db/database.ts'
import type { Deadline } from '../../db/deadline.ts'
import { ConflictError } from '../../db/errors.ts'
import { pauseAfter } from '../../db/retry.ts'
import { inTransaction, type SharedWork, shareTransaction } from '../../db/transaction.ts'
import { problem } from '../errors/problem.ts'
import * as idempotencyKeys from '../idempotency/store.ts'
import type { Call, KeyedWrites, Stores, Work } from './call.ts'
import { checked } from './write.ts'

type CreateStores = (db: Database) => Stores

/** The mutations of a process, with the keys in its database. */
export class DatabaseKeyedWrites implements KeyedWrites {
  readonly #db: Database
  readonly #createStores: CreateStores
  readonly #lifetime: number
  /** The names of the keys in use in this process. */
  readonly #running = new Set<string>()

  /** The keys are valid for `lifetime` milliseconds. `createStores` returns the stores of a transaction. */
  constructor(db: Database, createStores: CreateStores, lifetime: number) {
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
    const { caller, operation, input } = call
    const key = idempotencyKeys.keyOf(caller.holder, text, operation.name, input)
    const name = idempotencyKeys.nameOf(key)
    if (this.#running.has(name)) throw problem('keyRunning')
    this.#running.add(name)
    try {
      return await this.#runOnce(new KeyedWrite(call, key, work, this.#createStores), oneStatement)
    } finally {
      this.#running.delete(name)
    }
  }

  /** Makes the attempts. `mayShare` says whether the first one to write may share its transaction. */
  async #runOnce<Output>(write: KeyedWrite<Output>, mayShare: boolean): Promise<Output> {
    const { key } = write
    const { deadline } = write.call
    let hasShared = false
    for (let attempt = 0; ; attempt++) {
      // After an attempt whose commit was not answered, and after one that found the key taken, the row tells
      // what has happened. The look-up has attempts of its own.
      const known = await idempotencyKeys.find(this.#db, key, deadline)
      if (known && known.age < this.#lifetime) return write.answerOf(known)
      try {
        if (known || hasShared || !mayShare) {
          const work = (transaction: Database) => write.runAlone(transaction, known)
          return await inTransaction(this.#db, work, deadline)
        }
        hasShared = true
        return await shareTransaction(this.#db, write, deadline)
      } catch (error) {
        const isTaken = error instanceof idempotencyKeys.KeyTakenError
        await pauseAfter(attempt, isTaken ? new ConflictError(error, true) : error, true, deadline)
      }
    }
  }
}

/** A call with an Idempotency-Key, and its work. */
class KeyedWrite<Output> implements SharedWork<Output> {
  readonly call: Call
  readonly key: idempotencyKeys.NewKey
  readonly #work: Work<Output>
  readonly #createStores: CreateStores

  constructor(
    call: Call,
    key: idempotencyKeys.NewKey,
    work: Work<Output>,
    createStores: CreateStores,
  ) {
    this.call = call
    this.key = key
    this.#work = work
    this.#createStores = createStores
  }

  /** Runs the work in a transaction with others, and stores the key after it, which saves a statement. */
  async run(transaction: Database, ofAll: Deadline): Promise<Output> {
    const output = await this.#outputIn(transaction, ofAll)
    await idempotencyKeys.insert(transaction, this.key, stringify(output), ofAll)
    return output
  }

  /**
   * Runs the work in a transaction of its own, and stores the key before it, so that no work begins while another
   * instance uses the key. `expired` is the row of the key that is removed.
   */
  async runAlone(
    transaction: Database,
    expired: idempotencyKeys.StoredKey | undefined,
  ): Promise<Output> {
    const { key } = this
    const { deadline } = this.call
    if (expired) await idempotencyKeys.remove(transaction, expired.id, deadline)
    const id = await idempotencyKeys.insert(transaction, key, '', deadline)
    const output = await this.#outputIn(transaction, deadline)
    await idempotencyKeys.setAnswer(transaction, id, stringify(output), deadline)
    return output
  }

  /** Returns the output of the call that has stored the key. Throws UNPROCESSABLE_CONTENT if that was another request. */
  answerOf({ operation, fingerprint, answer }: idempotencyKeys.StoredKey): Output {
    if (operation !== this.key.operation || fingerprint !== this.key.fingerprint) {
      throw problem('keyUsed')
    }
    return parse(answer) as Output // an output of the same operation
  }

  /** Returns the checked output of the work, with the stores of the transaction. */
  #outputIn(transaction: Database, deadline: Deadline): Promise<Output> {
    return checked(this.call.inside(this.#createStores(transaction), deadline), this.#work)
  }
}
