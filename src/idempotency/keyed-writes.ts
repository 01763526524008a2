/** Mutations with an Idempotency-Key, each of which takes effect once. */
import { parse, stringify } from 'devalue'
import {
  type Creation,
  type Database,
  inTransaction,
  pauseOrThrow,
  type RootDatabase,
} from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import type { Call, KeyedWrites, Work } from '../procedure/call.ts'
import { outputOfRow, outputOfWork } from '../procedure/write.ts'
import { scopedKeyOf } from './header.ts'
import * as receipts from './store.ts'

/** Makes one attempt of a mutation, which stores a receipt with its output. */
type Attempt<Output> = (keyed: receipts.KeyedRequest) => Promise<Output>

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

  /** The receipt is stored before the work, so that none begins while another instance uses the key. */
  runWork<Context extends Call, Output>(
    call: Context,
    work: Work<Context, Output>,
  ): Promise<Output> {
    const { deadline } = call
    return this.#once(call, (keyed) =>
      inTransaction(
        this.#db,
        async (transaction) => {
          const id = await receipts.insert(transaction, keyed, deadline)
          const output = await outputOfWork(call, this.#createStores(transaction), work)
          await receipts.setAnswer(transaction, id, stringify(output), deadline)
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
    const { insertWithReceipt } = creation as Required<typeof creation> // that of a database has it
    return this.#once(call, async (keyed) => {
      // The plan of the creation calls this between the insert and the commit: a wrong output leaves neither row nor receipt.
      const make = (id: bigint) => {
        const output = outputOfRow(call, creation, id, input)
        return { receipt: { ...keyed, answer: stringify(output) }, output }
      }
      return await insertWithReceipt(call, input, { make, plan: receipts.insertPlan })
    })
  }

  /** Returns the output of the attempts, or of the call that has stored a receipt. */
  async #once<Output>(call: Call, write: Attempt<Output>): Promise<Output> {
    const { deadline } = call
    const keyed = receipts.requestOf(call, scopedKeyOf(call))
    const identity = receipts.identityOf(keyed)
    if (this.#running.includes(identity)) throw problem('keyRunning')
    this.#running.push(identity)
    try {
      for (let attempt = 0; ; attempt++) {
        // The receipt says whether an earlier attempt, or another instance, was committed. The look-up has attempts of its own.
        const receipt = await receipts.find(this.#db, keyed, deadline)
        if (receipt && receipt.age < this.#lifetime) return outputOf(receipt, keyed) as Output // of the same operation
        try {
          if (receipt) await receipts.remove(this.#db, receipt.id, deadline)
          return await write(keyed)
        } catch (error) {
          await pauseOrThrow(attempt, error, { repeatable: true, deadline })
        }
      }
    } finally {
      this.#running.splice(this.#running.indexOf(identity), 1)
    }
  }
}

/** Returns the output in a receipt. Throws UNPROCESSABLE_CONTENT if it is of another request. */
function outputOf(receipt: receipts.StoredReceipt, keyed: receipts.KeyedRequest): unknown {
  const isSame = receipt.operation === keyed.operation && receipt.fingerprint === keyed.fingerprint
  if (!isSame) throw problem('keyUsed')
  return parse(receipt.answer)
}
