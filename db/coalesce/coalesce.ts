/** Combines concurrent calls in batches, each of which asks the database once. */
import { Deadline } from '../deadline.ts'
import { OverloadedError } from '../errors.ts'
import type { Database } from '../tables.ts'
import { inTransaction, refuseInTransaction } from '../transaction.ts'

/** Milliseconds that a call waits for earlier batches, whose connections may hang. */
const MAX_WAIT = 50

/**
 * Number of batches that run before calls wait: while the database works on one, the service answers the
 * calls of the other. A second batch makes pages and creations with a key 3 to 7 % faster; a third makes
 * batches so small that it costs more than it saves.
 */
const CONCURRENCY = 2

/** Maximum number of concurrent calls: a thousand that wait, and those that run. */
const MAX_CALLS = 1_010

interface BatchOptions<Input, Output> {
  /** Runs a batch, and returns the outputs in the order of the inputs. */
  run(db: Database, inputs: Input[], deadline: Deadline): Promise<Output[]>
  /** Only calls with the same key share a batch, and wait for each other. */
  keyOf?(input: Input): string
  /** Waiting inputs that have the same name run once, and share the output. */
  nameOf?(input: Input): bigint | string
  /** Maximum number of inputs in a batch. A batch that is full does not wait. */
  maxSize: number | ((db: Database) => number)
}

/** A call of a batched function. Throws the errors of `run`, the reason of its deadline, OverloadedError. */
export type Coalesced<Input, Output> = (
  db: Database,
  input: Input,
  deadline: Deadline,
) => Promise<Output>

type Batcher<Input, Output> = (input: Input, deadline: Deadline) => Promise<Output>

interface Call<Output> {
  deadline: Deadline
  resolve(output: Output): void
  reject(error: unknown): void
}

/** An input, and the calls that wait for its output. */
interface Item<Input, Output> {
  name: bigint | string | undefined
  input: Input
  calls: Call<Output>[]
}

/** The queue of the calls with one key. */
interface Queue<Input, Output> {
  key: string
  waiting: Item<Input, Output>[]
  /** The batches that the calls wait for. */
  running: readonly Promise<void>[]
  /** Whether the next batches begin at the end of this turn of the event loop. */
  isScheduled: boolean
  timer: NodeJS.Timeout | undefined
}

/**
 * Returns a function whose calls share batches: those of one turn of the event loop, and those that
 * arrive while two batches run. No call joins a batch that has begun, so each call sees what was
 * committed before it. A deadline ends only its own call, and a batch ends with the last of its calls.
 * In a transaction, each call is a batch of its own, except in a shared one.
 */
export function coalesce<Input, Output>(
  options: BatchOptions<Input, Output>,
): Coalesced<Input, Output> {
  return async (db: Batching<Input, Output>, input, deadline) => {
    if (!db.isTransaction) {
      // In a batch, the failure would affect the other calls.
      refuseInTransaction()
      db[BATCHERS] ??= new Map()
    }
    const batchers = db[BATCHERS]
    if (!batchers) {
      const [output] = await options.run(db, [input], deadline)
      return output as Output // as many outputs as inputs
    }
    let batcher = batchers.get(options)
    if (!batcher) {
      batcher = createBatcher(db, options)
      batchers.set(options, batcher)
    }
    return await batcher(input, deadline)
  }
}

const BATCHERS = Symbol('batchers')

/** A database with its batchers. A WeakMap would keep a transaction's until the next full garbage collection. */
type Batching<Input, Output> = Database & {
  [BATCHERS]?: Map<BatchOptions<Input, Output>, Batcher<Input, Output>>
}

function createBatcher<Input, Output>(
  db: Database,
  { run, keyOf, nameOf, maxSize }: BatchOptions<Input, Output>,
): Batcher<Input, Output> {
  const size = typeof maxSize === 'number' ? maxSize : maxSize(db)
  // Few enough to be searched.
  const queues: Queue<Input, Output>[] = []
  let callCount = 0
  /** The most concurrent calls since there was none. */
  let most = 0
  /** Whether calls were concurrent before: after a shared batch, the next calls come together again. */
  let wasCrowd = false
  const onCall = () => {
    most = Math.max(most, ++callCount)
  }
  const onEnd = () => {
    if (--callCount > 0) return
    wasCrowd = most > 1
    most = 0
  }

  const isFull = ({ waiting }: Queue<Input, Output>) => waiting.length >= size
  const isFree = ({ running }: Queue<Input, Output>) => running.length < CONCURRENCY

  /** Begins the next batches, except one whose calls must wait. */
  function runNext(queue: Queue<Input, Output>): void {
    clearTimeout(queue.timer)
    queue.timer = undefined
    queue.isScheduled = false
    while (queue.waiting.length > 0 && (isFree(queue) || isFull(queue))) runBatch(queue)
    if (queue.waiting.length > 0) startTimer(queue)
  }

  function schedule(queue: Queue<Input, Output>): void {
    if (queue.isScheduled) return
    queue.isScheduled = true
    // In a transaction, the other calls follow at once. Outside, they come from the other requests of this
    // turn of the event loop, each of which runs in an immediate of its own. A call that is alone does not
    // wait for that: see `runAlone`.
    if (db.isTransaction) queueMicrotask(() => process.nextTick(runNext, queue))
    else setImmediate(runNext, queue)
  }

  function runBatch(queue: Queue<Input, Output>): void {
    const running = runItems(queue.waiting.splice(0, size))
    queue.running = [...queue.running, running]
    void running.then(() => {
      queue.running = queue.running.filter((other) => other !== running)
      runNext(queue)
    })
  }

  function startTimer(queue: Queue<Input, Output>): void {
    queue.timer ??= setTimeout(() => {
      queue.running = []
      runNext(queue)
    }, MAX_WAIT)
  }

  async function runItems(queued: Item<Input, Output>[]): Promise<void> {
    const items: Item<Input, Output>[] = []
    for (const { name, input, calls } of queued) {
      const waiting = calls.filter(({ deadline }) => !deadline.reason)
      if (waiting.length > 0) items.push({ name, input, calls: waiting })
    }
    if (items.length === 0) return
    const calls = items.flatMap(({ calls }) => calls)
    try {
      const inputs = items.map(({ input }) => input)
      const outputs = await run(db, inputs, jointDeadline(calls))
      for (const [index, { calls }] of items.entries()) {
        // As many outputs as inputs.
        for (const { resolve } of calls) resolve(outputs[index] as Output)
      }
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }

  /** Runs a call at once. A caller that waits for one answer gets it a tenth faster than through a queue. */
  async function runAlone(input: Input, deadline: Deadline): Promise<Output> {
    onCall()
    try {
      const [output] = await run(db, [input], deadline)
      return output as Output // as many outputs as inputs
    } finally {
      onEnd()
    }
  }

  return async (input, deadline) => {
    if (deadline.reason) throw deadline.reason
    if (callCount === 0 && !wasCrowd && deadline.isOfOneCall) return await runAlone(input, deadline)
    const key = keyOf ? keyOf(input) : ''
    let queue = queues.find((other) => other.key === key)
    if (!queue) {
      queue = { key, waiting: [], running: [], isScheduled: false, timer: undefined }
      queues.push(queue)
    } else if (queue.running.length > 0 && callCount >= MAX_CALLS) {
      throw new OverloadedError('Too many calls wait for the database')
    }
    onCall()
    const { promise, resolve, reject } = Promise.withResolvers<Output>()
    deadline.onGiveUp(reject)
    try {
      const call = { deadline, resolve, reject }
      const name = nameOf?.(input)
      const item = nameOf && queue.waiting.find((other) => other.name === name)
      if (item) item.calls.push(call)
      else queue.waiting.push({ name, input, calls: [call] })
      if (isFree(queue) || isFull(queue)) schedule(queue)
      else startTimer(queue)
      return await promise
    } finally {
      onEnd()
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

/** Work for a shared transaction. It must use the deadline that it receives, and no other. */
type SharedWork<Result> = (transaction: Database, deadline: Deadline) => Promise<Result>

/**
 * Runs work in a transaction with other such works, which run concurrently: their inserts share
 * statements, and all of them share a commit. Returns the result after the commit, and undefined if one
 * of several works failed. Then the effect of each is unknown, and each caller must check, and run its
 * work alone. Work that is alone in the transaction throws its own errors.
 */
export async function inSharedTransaction<Result extends object>(
  db: Database,
  work: SharedWork<Result>,
  deadline: Deadline,
): Promise<Result | undefined> {
  const result = await runShared(db, work, deadline)
  return result as Result | undefined // the result of this work
}

const runShared = coalesce<SharedWork<object>, object | undefined>({
  maxSize: 100,
  async run(db, works, deadline) {
    const runAll = async (transaction: Batching<never, never>) => {
      transaction[BATCHERS] = new Map()
      // The transaction must not end while some of the works still run.
      const outcomes = await Promise.allSettled(works.map((work) => work(transaction, deadline)))
      return outcomes.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return outcome.value
      })
    }
    try {
      return await inTransaction(db, runAll, deadline)
    } catch (error) {
      if (works.length === 1) throw error
      return works.map(() => undefined)
    }
  },
})
