/** Mutations: each runs in a transaction, again after an attempt that certainly had no effect. */
import { parseIdempotencyKey } from '../idempotency/header.ts'
import { madeBy, type Options, type Resolver, type Stores } from './context.ts'
import { checkOutput } from './procedure.ts'

/** Returns the work of a transaction: `make` with its stores, and the deadline of all calls that share it. */
const workOf =
  <Input, Output>(make: Resolver<Input, Output>, options: Options<Input>) =>
  (stores: Stores, deadline = options.ctx.deadline): Promise<Output> =>
    makeChecked(make, { ...options, ctx: { ...options.ctx, stores, deadline } })

/** Returns the checked output of `make`: inside its transaction, which a wrong output rolls back. */
async function makeChecked<Input, Output>(
  make: Resolver<Input, Output>,
  options: Options<Input>,
): Promise<Output> {
  const output = await make(options)
  // The output of the schema has its type.
  return options.output ? (checkOutput(options.output, output) as Output) : output
}

/**
 * Returns the resolver of a mutation. `make` runs in one transaction, whose stores are `ctx.stores`.
 * It runs up to three times within the deadline of the call, after a lock timeout or a lost connection,
 * and up to six times after deadlocks, if the attempt certainly had no effect. So `make` must have no
 * effect except through `ctx.stores` (it must not send mail), and must await nothing else, because its
 * transaction holds locks. Access to the database by other stores throws. The resolver throws the errors of
 * `make`, and DatabaseUnavailableError.
 */
export const write = <Input, Output>(make: Resolver<Input, Output>): Resolver<Input, Output> =>
  madeBy('write', (options) => options.ctx.transact(workOf(make, options), options.ctx.deadline))

/**
 * Returns the resolver of a creation or of a repeatable action
 * (draft-ietf-httpapi-idempotency-key-header-07). It is `write`. If the request has an Idempotency-Key,
 * the transaction also stores the key and the output, and a repetition returns this output. The
 * resolver throws BAD_REQUEST for an invalid key, CONFLICT while a request with the key is running,
 * UNPROCESSABLE_CONTENT for a key of another request, and the errors of `make`.
 *
 * `oneStatement` says that `make` writes with one statement, which is atomic without a transaction, and which
 * concurrent creations share (see db/coalesce/inserts.ts):
 *
 * | key | `oneStatement` | `make` runs |
 * |---|---|---|
 * | none | no | in a transaction of its own |
 * | none | yes | without one: begin and commit are two round trips. An output that its schema rejects stays |
 * | new | no | in a transaction of its own, after the key is stored |
 * | new | yes | in a transaction with concurrent calls and their joint deadline, before the key is stored |
 * | expired, or after an attempt that failed | either | as with a new key and without `oneStatement` |
 */
export function idempotentWrite<Input, Output>(
  make: Resolver<Input, Output>,
  { oneStatement = false }: { oneStatement?: boolean } = {},
): Resolver<Input, Output> {
  const withoutKey = oneStatement
    ? (options: Options<Input>) => makeChecked(make, options)
    : write(make)
  return madeBy('idempotentWrite', async (options) => {
    const { ctx, input, path: operation } = options
    const key = parseIdempotencyKey(ctx.idempotencyHeader)
    if (key === undefined) return await withoutKey(options)
    const request = { holder: ctx.caller.holder, key, operation, input }
    const work = workOf(make, options)
    return await ctx.idempotency.once(request, ctx.deadline, work, { oneStatement })
  })
}
