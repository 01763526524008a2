/** Mutations: each runs in a transaction, which is repeated after a deadlock or a lost connection. */
import type { Context, Stores } from './context.ts'

/** The options of a tRPC resolver, as far as mutations use them. */
export interface Options<Input> {
  ctx: Context & { caller: { keyId: bigint } }
  input: Input
  /** The name of the procedure. */
  path: string
}

export type Resolver<Input, Output> = (options: Options<Input>) => Promise<Output>

type Maker = 'write' | 'idempotentWrite'

const makers = new WeakMap<object, Maker>()

/** Returns which function made a resolver, as the service requires of mutations. */
export const makerOf = (resolver: object): Maker | undefined => makers.get(resolver)

/** Records which function made a resolver, and returns it. */
export function madeBy<Input, Output>(maker: Maker, resolver: Resolver<Input, Output>) {
  makers.set(resolver, maker)
  return resolver
}

/** Returns the options of a resolver with the stores, and the deadline, of a transaction. */
export const inside = <Input>(
  options: Options<Input>,
  stores: Stores,
  deadline = options.ctx.deadline,
): Options<Input> => ({ ...options, ctx: { ...options.ctx, stores, deadline } })

/**
 * Returns the resolver of a mutation. `make` runs in one transaction, whose stores are `ctx.stores`.
 * It runs up to three times within the deadline of the call: after a deadlock, a lock timeout or a
 * lost connection, if the attempt certainly had no effect. So `make` must have no effect except
 * through `ctx.stores` (it must not send mail), and must await nothing else, because its transaction
 * holds locks. Access to the database by other stores throws. The resolver throws the errors of
 * `make`, and DatabaseUnavailableError.
 */
export const write = <Input, Output>(make: Resolver<Input, Output>): Resolver<Input, Output> =>
  madeBy('write', (options) =>
    options.ctx.transact((stores) => make(inside(options, stores)), options.ctx.deadline),
  )
