/** Creations that happen once per Idempotency-Key, whatever they create. */
import type { Database } from '../../db/tables.ts'
import type { Context } from '../trpc.ts'
import { idempotencyError, parseIdempotencyKey } from './header.ts'

interface Options<Input> {
  ctx: Context & { caller: { keyId: bigint } }
  input: Input
  /** The name of the procedure. */
  path: string
}

const onceResolvers = new WeakSet<object>()

/**
 * The resolver of a creation. `make` gets a transaction when the caller sent an Idempotency-Key, in
 * which the key is kept too; the store that it calls makes do without one otherwise. It throws
 * BAD_REQUEST, CONFLICT or UNPROCESSABLE_CONTENT about the key, and what `make` throws.
 */
export function once<Input, Output>(
  make: (options: Options<Input>, transaction: Database | undefined) => Promise<Output>,
) {
  const resolver = async (options: Options<Input>): Promise<Output> => {
    const { ctx, input, path: operation } = options
    const key = parseIdempotencyKey(ctx.idempotencyHeader)
    if (key === undefined) return await make(options, undefined)
    const request = { apiKeyId: ctx.caller.keyId, key, operation, input }
    const outcome = await ctx.idempotency.once(request, ctx.deadline, (transaction) =>
      make(options, transaction),
    )
    if (typeof outcome === 'string') throw idempotencyError(outcome)
    return outcome.output
  }
  onceResolvers.add(resolver)
  return resolver
}

/** Whether a resolver was made by `once`. */
export const isOnce = (resolver: object): boolean => onceResolvers.has(resolver)
