/** Combines concurrent calls in batches, each of which asks the database once. */
import { Deadline } from './deadline.ts'
import { engineOf } from './engine.ts'
import { OverloadedError } from './errors.ts'
import type { Database } from './tables.ts'
import { join } from './trace.ts'
import { refuseInTransaction } from './transaction-scope.ts'

/** Milliseconds that calls wait for the batch before theirs, whose connection may hang. */
const MAX_WAIT = 50

/** Maximum number of concurrent calls: a thousand that wait, and those that run. */
const MAX_CALLS = 1_010

/** The limits of batches. */
export interface BatchLimits {
  /** Maximum number of calls in a batch. */
  maxSize?: number
  /** Maximum number of concurrent calls. */
  maxCalls?: number
  /** Milliseconds between two batches, which then never run concurrently. */
  pause?: number
}

interface BatchOptions<Input, Output> extends BatchLimits {
  /** Runs a batch, and returns the outputs in the order of the inputs. */
  run(db: Database, inputs: Input[], deadline: Deadline): Promise<Output[]>
  /** Only calls with the same key share a batch, and wait for each other. */
  keyOf?(input: Input): string
  /** Inputs of a batch that have the same name run once, and share the output. */
  nameOf?(input: Input): bigint | string
}

/** A call of a batched function. Throws the errors of `run`, the reason of its deadline, OverloadedError. */
export type Batched<Input, Output> = (
  db: Database,
  input: Input,
  deadline: Deadline,
) => Promise<Output>

interface Call<Input, Output> {
  input: Input
  deadline: Deadline
  resolve(output: Output): void
  reject(error: unknown): void
}

interface Queue<Input, Output> {
  waiting: Call<Input, Output>[]
  /** The batch that the calls wait for; undefined until the first one begins. */
  running: Promise<void> | undefined
  timer: NodeJS.Timeout | undefined
}

/**
 * Returns a function whose calls share batches: those of one turn of the event loop, and those that
 * arrive while a batch runs. No call joins a batch that has begun, so each call sees what was
 * committed before it. A deadline ends only its own call, and a batch ends with the last of its calls.
 * In a transaction, each call is a batch of its own, unless `allowBatches` says otherwise.
 */
export function batch<Input, Output>(options: BatchOptions<Input, Output>): Batched<Input, Output> {
  const batchers = new WeakMap<object, ReturnType<typeof createBatcher<Input, Output>>>()
  return async (db, input, deadline) => {
    // In a batch, the failure would affect the other calls.
    if (!db.isTransaction) refuseInTransaction()
    else if (!withBatches.has(db)) {
      const [output] = await options.run(db, [input], deadline)
      return output as Output // as many outputs as inputs
    }
    const scope = db.isTransaction ? db : engineOf(db)
    const call = batchers.get(scope) ?? createBatcher(db, options)
    batchers.set(scope, call)
    return await call(input, deadline)
  }
}

const withBatches = new WeakSet<Database>()

/** Allows batches in a transaction, whose work makes calls concurrently. */
export const allowBatches = (transaction: Database): void => void withBatches.add(transaction)

function createBatcher<Input, Output>(
  db: Database,
  {
    run,
    keyOf,
    nameOf,
    maxSize = Number.POSITIVE_INFINITY,
    maxCalls = MAX_CALLS,
    pause = 0,
  }: BatchOptions<Input, Output>,
): (input: Input, deadline: Deadline) => Promise<Output> {
  const queues = new Map<string, Queue<Input, Output>>()
  let callCount = 0

  /** Runs the calls that wait. */
  function runNext(key: string, queue: Queue<Input, Output>): void {
    clearTimeout(queue.timer)
    queue.timer = undefined
    if (queue.waiting.length === 0) {
      queues.delete(key)
      return
    }
    const running = runAll(queue.waiting.splice(0, maxSize))
    queue.running = running
    const onEnd = () => {
      if (queue.running === running) runNext(key, queue)
    }
    void running.then(pause > 0 ? () => setTimeout(onEnd, pause) : onEnd)
    if (queue.waiting.length > 0) startTimer(key, queue)
  }

  function startTimer(key: string, queue: Queue<Input, Output>): void {
    if (pause === 0) queue.timer ??= setTimeout(runNext, MAX_WAIT, key, queue)
  }

  async function runAll(queued: Call<Input, Output>[]): Promise<void> {
    const calls = queued.filter(({ deadline }) => !deadline.reason)
    if (calls.length === 0) return
    const inputs = calls.map(({ input }) => input)
    try {
      const outputs = await runDistinct(inputs, jointDeadline(calls))
      // As many outputs as inputs.
      for (const [index, { resolve }] of calls.entries()) resolve(outputs[index] as Output)
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }

  async function runDistinct(inputs: Input[], deadline: Deadline): Promise<Output[]> {
    if (!nameOf || inputs.length === 1) return await run(db, inputs, deadline)
    const names = inputs.map(nameOf)
    const distinct = new Map(inputs.map((input, index) => [names[index], input]))
    const outputs = await run(db, [...distinct.values()], deadline)
    const found = new Map([...distinct.keys()].map((name, index) => [name, outputs[index]]))
    return names.map((name) => found.get(name) as Output) // each name has run
  }

  return async (input, deadline) => {
    if (deadline.reason) throw deadline.reason
    const key = keyOf ? keyOf(input) : ''
    let queue = queues.get(key)
    if (!queue) {
      queue = { waiting: [], running: undefined, timer: undefined }
      queues.set(key, queue)
      // After all microtasks, which are the other calls of this turn. Another turn would cost time.
      queueMicrotask(() => process.nextTick(runNext, key, queue))
    } else if (queue.running) {
      if (callCount >= maxCalls) throw new OverloadedError('Too many calls wait for the database')
      startTimer(key, queue)
    }
    callCount++
    const { promise, resolve, reject } = Promise.withResolvers<Output>()
    const removeListener = deadline.onGiveUp(reject)
    try {
      queue.waiting.push({ input, deadline, resolve, reject })
      return await promise
    } finally {
      removeListener()
      callCount--
    }
  }
}

/** Returns a deadline that ends with the last one of the calls, and has a trace that joins theirs. */
function jointDeadline(calls: { deadline: Deadline }[]): Deadline {
  const [first] = calls
  if (first && calls.length === 1) return first.deadline
  const trace = first?.deadline.trace && join(calls.map(({ deadline }) => deadline.trace))
  const joint = new Deadline(Number.POSITIVE_INFINITY, trace)
  let waiting = calls.length
  for (const { deadline } of calls) {
    deadline.onGiveUp((reason) => {
      if (--waiting === 0) joint.giveUp(reason)
    })
  }
  return joint
}
