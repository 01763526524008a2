/** Combines concurrent calls in batches, each of which asks the database once. */
import { Deadline } from '../deadline.ts'
import { OverloadedError } from '../errors.ts'
import type { Database } from '../tables.ts'
import { refuseInTransaction } from '../transaction.ts'

/** Milliseconds that a call waits for earlier batches, whose connections may hang. */
const MAX_WAIT = 50

/**
 * Number of batches that run before calls wait: while the database works on one, the service answers the
 * calls of the other. A second batch makes pages and creations with a key 3 to 7 % faster; a third makes
 * batches so small that it costs more than it saves.
 */
const CONCURRENCY = 2

/** Maximum number of concurrent calls of a function (of a list, for each set of its parameters): a thousand that wait, and those that run. */
const MAX_CALLS = 1_010

interface Batches<Input, Output> {
  /** Runs a batch, and returns the outputs in the order of the inputs. */
  run(db: Database, inputs: Input[], deadline: Deadline): Promise<Output[]>
  /** Waiting inputs that have the same name run once, and share the output. */
  nameOf?(input: Input): bigint | string
  /** Maximum number of inputs in a batch. A batch that is full does not wait. */
  maxSize(db: Database): number
  /** Whether calls do not wait for those of the next turn of the event loop. */
  isEarly?(db: Database): boolean
}

/** A call that may share a batch. Throws the errors of `run`, the reason of its deadline, OverloadedError. */
export type Coalesced<Input, Output> = (
  db: Database,
  input: Input,
  deadline: Deadline,
) => Promise<Output>

/**
 * Returns a function whose calls share batches. No call joins a batch that has begun, so each call sees what
 * was committed before it. A deadline ends only its own call, and a batch ends with the last of its calls.
 *
 * | A call | runs |
 * |---|---|
 * | while its request is the only one | at once: a queue would cost a tenth of the request |
 * | in a transaction that is not shared | at once |
 * | while fewer than two batches run | with the others of this turn and the next of the event loop (`isEarly`: of this one) |
 * | while two batches run | once one of them ends, a batch is full, or 50 ms have passed |
 */
export function coalesce<Input, Output>(batches: Batches<Input, Output>): Coalesced<Input, Output> {
  return async (db: Queued<Input, Output>, input, deadline) => {
    if (deadline.reason) throw deadline.reason
    if (!db.isTransaction) {
      // In a batch, the failure would affect the other calls.
      refuseInTransaction()
      db[QUEUES] ??= new Map()
    }
    const queues = deadline.isAlone ? undefined : db[QUEUES]
    if (!queues) {
      const [output] = await batches.run(db, [input], deadline)
      return output as Output // as many outputs as inputs
    }
    const queue = queues.get(batches) ?? new Queue(db, batches)
    queues.set(batches, queue)
    return await queue.call(input, deadline)
  }
}

const QUEUES = Symbol('queues')

/** Makes the calls in a transaction share batches, as on a database: their works run concurrently. */
export const shareBatches = (transaction: Queued<never, never>) => {
  transaction[QUEUES] = new Map()
}

/** A database with its queues. A WeakMap would keep a transaction's until the next full garbage collection. */
type Queued<Input, Output> = Database & {
  [QUEUES]?: Map<Batches<Input, Output>, Queue<Input, Output>>
}

interface Call<Output> extends PromiseWithResolvers<Output> {
  deadline: Deadline
}

/** An input, and the calls that wait for its output. */
interface Item<Input, Output> {
  name: bigint | string | undefined
  input: Input
  calls: Call<Output>[]
}

/** The calls of a function on a database or a shared transaction. */
class Queue<Input, Output> {
  readonly #db: Database
  readonly #batches: Batches<Input, Output>
  readonly #maxSize: number
  #callCount = 0
  #waiting: Item<Input, Output>[] = []
  /** The batches that the calls wait for. A Set would keep those that it lost until the next full collection. */
  #running: Item<Input, Output>[][] = []
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined

  constructor(db: Database, batches: Batches<Input, Output>) {
    this.#db = db
    this.#batches = batches
    this.#maxSize = batches.maxSize(db)
  }

  async call(input: Input, deadline: Deadline): Promise<Output> {
    if (this.#running.length > 0 && this.#callCount >= MAX_CALLS) {
      throw new OverloadedError('Too many calls wait for the database')
    }
    const call: Call<Output> = { deadline, ...Promise.withResolvers() }
    deadline.onGiveUp(call.reject)
    const name = this.#batches.nameOf?.(input)
    const item = name !== undefined && this.#waiting.find((other) => other.name === name)
    if (item) item.calls.push(call)
    else this.#waiting.push({ name, input, calls: [call] })
    this.#callCount++
    if (this.#mayRun()) this.#schedule()
    else this.#startTimer()
    try {
      return await call.promise
    } finally {
      this.#callCount--
    }
  }

  #mayRun(): boolean {
    return this.#running.length < CONCURRENCY || this.#waiting.length >= this.#maxSize
  }

  /** Runs what waits after the next turn of the event loop: the answers of this one bring the next requests. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    // A shared transaction's works run in one turn. Requests are a tenth fewer without the second immediate.
    if (this.#db.isTransaction) queueMicrotask(() => process.nextTick(() => this.#runNext()))
    else if (this.#batches.isEarly?.(this.#db)) setImmediate(() => this.#runNext())
    else setImmediate(() => setImmediate(() => this.#runNext()))
  }

  /** Begins the next batches, except one whose calls must wait. */
  #runNext(): void {
    this.#isScheduled = false
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#waiting.length > 0 && this.#mayRun()) {
      const batch = this.#waiting.splice(0, this.#maxSize)
      this.#running = [...this.#running, batch]
      void this.#run(batch).then(() => {
        this.#running = this.#running.filter((other) => other !== batch)
        this.#runNext()
      })
    }
    if (this.#waiting.length > 0) this.#startTimer()
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#running = [] // they go on, and the calls no longer wait for them
      this.#runNext()
    }, MAX_WAIT)
  }

  async #run(batch: Item<Input, Output>[]): Promise<void> {
    const isWaiting = ({ deadline }: Call<Output>) => !deadline.reason
    const items = batch.filter(({ calls }) => calls.some(isWaiting))
    if (items.length === 0) return
    const calls = items.flatMap((item) => item.calls.filter(isWaiting))
    try {
      const inputs = items.map(({ input }) => input)
      const outputs = await this.#batches.run(this.#db, inputs, jointDeadline(calls))
      for (const [index, { calls }] of items.entries()) {
        // As many outputs as inputs.
        for (const { resolve } of calls) resolve(outputs[index] as Output)
      }
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
}

/** Returns a deadline that ends with the last one of the calls. */
function jointDeadline(calls: readonly { deadline: Deadline }[]): Deadline {
  // The calls of a shared transaction have one deadline.
  const deadlines = new Set(calls.map(({ deadline }) => deadline))
  const [first] = deadlines
  if (first && deadlines.size === 1) return first
  const joint = new Deadline(Number.POSITIVE_INFINITY)
  let waiting = deadlines.size
  for (const deadline of deadlines) {
    deadline.onGiveUp((reason) => {
      if (--waiting === 0) joint.giveUp(reason)
    })
  }
  return joint
}
