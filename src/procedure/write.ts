/** Mutations: each runs in a transaction, which is repeated after a deadlock or a lost connection. */
import type { z } from 'zod'
import { internal } from '../errors/problem.ts'
import type { Stores } from './context.ts'
import { madeBy, type Options, type Resolver } from './resolver.ts'

/** Returns the options of a resolver with the stores, and the deadline, of a transaction. */
export const inside = <Input>(
  options: Options<Input>,
  stores: Stores,
  deadline = options.ctx.deadline,
): Options<Input> => ({ ...options, ctx: { ...options.ctx, stores, deadline } })

/** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
export function checkOutput(schema: z.ZodType, output: unknown): unknown {
  const { success, data, error } = schema.safeParse(output)
  if (!success) throw internal(error)
  return data
}

/** Returns the checked output of `make`: inside its transaction, which a wrong output rolls back. */
export async function makeChecked<Input, Output>(
  make: Resolver<Input, Output>,
  options: Options<Input>,
): Promise<Output> {
  const output = await make(options)
  const { schemas } = options.ctx
  // The output of the schema has its type.
  return schemas ? (checkOutput(schemas.output, output) as Output) : output
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
  madeBy('write', (options) =>
    options.ctx.transact(
      (stores) => makeChecked(make, inside(options, stores)),
      options.ctx.deadline,
    ),
  )
