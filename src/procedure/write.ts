/** How every mutation writes: as a whole or not at all, and again where that provably does no harm. */
import type { Context, Stores } from './context.ts'

/** As much of what tRPC hands to a resolver as is used here. */
export interface Options<Input> {
  ctx: Context & { caller: { keyId: bigint } }
  input: Input
  /** The name of the procedure. */
  path: string
}

export type Resolver<Input, Output> = (options: Options<Input>) => Promise<Output>

const resolvers = new WeakSet<object>()

/** Whether a resolver was made by `write` or `once`: that of a mutation must be, or there is no start. */
export const isWrite = (resolver: object): boolean => resolvers.has(resolver)

/** Notes that a resolver does what `write` promises. */
export function asWrite<Input, Output>(resolver: Resolver<Input, Output>): Resolver<Input, Output> {
  resolvers.add(resolver)
  return resolver
}

/** The options of a resolver inside a transaction: the stores and the deadline are the transaction's. */
export const inside = <Input>(
  options: Options<Input>,
  stores: Stores,
  deadline = options.ctx.deadline,
): Options<Input> => ({ ...options, ctx: { ...options.ctx, stores, deadline } })

/**
 * The resolver of a mutation. `make` runs in one transaction, whose stores are `ctx.stores`: all of
 * its effects happen, or none. It runs again, up to three times in all, after a deadlock, a lock
 * held for too long or a lost connection, as long as nothing can have happened, within the deadline
 * of the call. So `make` must have no effect but through `ctx.stores` (it sends no mail), and must
 * wait for nothing else: others wait for its transaction. What reaches the database past `ctx.stores`
 * throws. Throws what `make` throws, and DatabaseUnavailableError.
 */
export const write = <Input, Output>(make: Resolver<Input, Output>): Resolver<Input, Output> =>
  asWrite((options) =>
    options.ctx.transact((stores) => make(inside(options, stores)), options.ctx.deadline),
  )
