/**
 * Mutations: transactions, or a single insert. They run again after an attempt that certainly had no effect; with an
 * Idempotency-Key after any attempt, because the stored key says whether it had one.
 */
import type { Creation } from '../../db/index.ts'
import type { Call, Work } from './call.ts'

/**
 * Runs `work` in one transaction, and returns its output, checked before the commit. It runs again
 * only after an attempt without effect, within the deadline of the call, as often as db/retry.ts says.
 * So `work` must have no effect except through the stores of its call (it must not send mail), and must await nothing
 * else, because its transaction holds locks. Access to the database by other stores throws. Throws the errors of `work`,
 * and DatabaseUnavailableError.
 * @public Mutations without a key need it, such as those of test/visits.
 */
export const write = <Context extends Call, Output>(
  call: Context,
  work: Work<Context, Output>,
): Promise<Output> => mutate(call, 'write', () => workInTransaction(call, work))

/**
 * Runs `work` as `write` does, but once for each Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). If the request has
 * one, the transaction also stores a receipt with the output, which a repetition returns. Throws
 * BAD_REQUEST for an invalid key, CONFLICT while a request with the key is running, UNPROCESSABLE_CONTENT for a
 * key of another request, and the errors of `work`.
 * @public Actions with a key need it, and creations of more than one statement, such as those of test/visits.
 */
export const writeIdempotent = <Context extends Call, Output>(
  call: Context,
  work: Work<Context, Output>,
): Promise<Output> =>
  mutate(call, 'writeIdempotent', () =>
    call.idempotencyHeader === undefined
      ? workInTransaction(call, work)
      : call.shared.keyedWrites.runWork(call, work),
  )

/**
 * Creates a row of a store, once for each Idempotency-Key, and returns its output. Concurrent creations share
 * statements, and with keys a transaction. An output that its schema rejects has no effect. Throws as `writeIdempotent`,
 * and DuplicateError.
 */
export const create = <Stores, Input, Output>(
  call: Call<Stores>,
  creation: Creation<Input, Output>,
  input: Input,
): Promise<Output> =>
  mutate(call, 'create', () =>
    call.idempotencyHeader === undefined
      ? insertRow(call, creation, input)
      : call.shared.keyedWrites.create(call, creation, input),
  )

/**
 * Runs `work` whose effect is not in the database, such as a call of another service, without a transaction or an
 * Idempotency-Key. It runs once, and ends at the deadline: pass `signal` of its call to what waits. Its output is
 * checked after the effect, so an output that its schema rejects is 500 although the effect stays. Throws
 * the errors of `work`.
 * @public Mutations whose effect is elsewhere need it, such as that of test/teams.
 */
export const writeElsewhere = <Context extends Call, Output>(
  call: Context,
  work: Work<Context, Output>,
): Promise<Output> =>
  mutate(call, 'writeElsewhere', () => {
    call.deadline.signal.throwIfAborted() // the call is answered
    return call.deadline.limit(outputOfWork(call, call.shared.stores, work))
  })

type Way = 'write' | 'writeIdempotent' | 'create' | 'writeElsewhere'

/** Has the effect of a mutation in one of these ways, and returns its output, which the resolver must return. */
async function mutate<Output>(
  call: Call,
  way: Way,
  effect: () => Promise<Output>,
): Promise<Output> {
  refuseUnlessDescribed(call, way)
  const output = await effect()
  call.progress.written = { output } // with which the operation compares what the resolver returns
  return output
}

/** Throws TypeError if this way contradicts the description of the operation. */
function refuseUnlessDescribed({ operation }: Call, way: Way): void {
  const { name, type, rest, access } = operation
  if (type === 'query') throw new TypeError(`The procedure ${name} is a query, and calls ${way}(…)`)
  const takesKey = way === 'writeIdempotent' || way === 'create'
  if (takesKey && access.isPublic) {
    throw new TypeError(`The procedure ${name} is public, and calls ${way}(…), which takes a key`)
  }
  if (rest && (rest.takesKey === true) !== takesKey) {
    const meta = takesKey ? 'needs takesKey: true' : 'must not have takesKey'
    throw new TypeError(`The procedure ${name} calls ${way}(…), so its restMeta ${meta}`)
  }
}

const ANY_ID = 1n

/** Inserts a row without a receipt, and returns its checked output. */
export async function insertRow<Input, Output>(
  call: Call,
  creation: Creation<Input, Output>,
  input: Input,
): Promise<Output> {
  // Of any id, and before the insert, which nothing undoes: a wrong output must leave no row.
  outputOfRow(call, creation, ANY_ID, input)
  return outputOfRow(call, creation, await creation.insert(call, input), input)
}

/** Returns the checked output of a row. */
export const outputOfRow = <Input, Output>(
  { operation }: Call,
  creation: Creation<Input, Output>,
  id: bigint,
  input: Input,
): Output => operation.checkOutput(creation.output(id, input)) as Output // that of the schema has its type

const workInTransaction = <Context extends Call, Output>(
  call: Context,
  work: Work<Context, Output>,
): Promise<Output> =>
  call.shared.transact((stores) => outputOfWork(call, stores, work), call.deadline)

/** What the call of a work has beside the fields of `ctx`. Inherited: a copy of the call would make the signal otherwise. */
const ofWork = {
  get signal() {
    return (this as unknown as Call).deadline.signal // the object below has the fields of a call
  },
}

/** Returns the checked output of the work with these stores: inside its transaction, which a wrong output rolls back. */
export async function outputOfWork<Context extends Call, Output>(
  call: Context,
  stores: unknown,
  work: Work<Context, Output>,
): Promise<Output> {
  const inside = { __proto__: ofWork, ...call, stores } as unknown as Parameters<typeof work>[0]
  // The output of the schema has its type.
  return call.operation.checkOutput(await work(inside)) as Output
}
