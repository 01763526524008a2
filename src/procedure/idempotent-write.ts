/** Mutations that a client can repeat safely, with an Idempotency-Key. */
import { idempotencyError, parseIdempotencyKey } from '../idempotency/header.ts'
import type { Make } from '../idempotency/store.ts'
import type { Stores } from './context.ts'
import { madeBy, type Options, type Resolver } from './resolver.ts'
import { inside, makeChecked, write } from './write.ts'

/**
 * Returns the resolver of a creation or of a repeatable action
 * (draft-ietf-httpapi-idempotency-key-header-07). It is `write`. If the request has an Idempotency-Key,
 * the transaction also stores the key and the output, and a repetition returns this output. The
 * resolver throws BAD_REQUEST for an invalid key, CONFLICT while a request with the key is running,
 * UNPROCESSABLE_CONTENT for a key of another request, and the errors of `make`.
 *
 * `oneStatement` says that `make` writes with one statement, which is atomic without a transaction.
 * Without a key, begin and commit are then omitted: they are two more round trips, and concurrent
 * creations can share a statement (see db/coalesce/inserts.ts). The store repeats the statement where it had
 * no effect. An output that its schema rejects is then 500 without a rollback.
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
    const work: Make<Stores, Output> = (stores, deadline) =>
      makeChecked(make, inside(options, stores, deadline))
    const outcome = await ctx.idempotency.once(request, ctx.deadline, work, { oneStatement })
    if (typeof outcome === 'string') throw idempotencyError(outcome)
    return outcome.output
  })
}
