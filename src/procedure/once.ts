/** Mutations that happen once per Idempotency-Key, whatever they do. */

import { idempotencyError, parseIdempotencyKey } from '../idempotency/header.ts'
import type { Make } from '../idempotency/store.ts'
import type { Stores } from './context.ts'
import { asWrite, inside, type Resolver, write } from './write.ts'

const resolvers = new WeakSet<object>()

/** Whether a resolver was made by `once`. */
export const isOnce = (resolver: object): boolean => resolvers.has(resolver)

/**
 * The resolver of a creation, or of an action that may be repeated. It is `write`, and where the
 * caller sent an Idempotency-Key, the transaction keeps the key and the output too, which answer a
 * repetition. It throws BAD_REQUEST, CONFLICT or UNPROCESSABLE_CONTENT about the key, and what `make`
 * throws.
 *
 * With `oneStatement`, `make` writes by one statement, which is atomic by itself. Then without a key
 * there is no transaction, whose begin and commit would be two more trips to the database, and
 * concurrent creations can share a statement (see db/inserts.ts). Its store repeats the statement
 * where that does no harm.
 */
export function once<Input, Output>(
  make: Resolver<Input, Output>,
  { oneStatement = false }: { oneStatement?: boolean } = {},
): Resolver<Input, Output> {
  const withoutKey = oneStatement ? make : write(make)
  const resolver: Resolver<Input, Output> = async (options) => {
    const { ctx, input, path: operation } = options
    const key = parseIdempotencyKey(ctx.idempotencyHeader)
    if (key === undefined) return await withoutKey(options)
    const request = { apiKeyId: ctx.caller.keyId, key, operation, input }
    const work: Make<Stores, Output> = (stores, deadline) => make(inside(options, stores, deadline))
    const outcome = await ctx.idempotency.once(request, ctx.deadline, work, { oneStatement })
    if (typeof outcome === 'string') throw idempotencyError(outcome)
    return outcome.output
  }
  resolvers.add(resolver)
  return asWrite(resolver)
}
