/** What a resolver is, which function of this folder made it, and the check of its output. */
import type { z } from 'zod'
import { problem } from '../errors/catalogue.ts'
import type { Context } from './context.ts'

/** The options of a tRPC resolver, as far as this folder uses them. */
export interface Options<Input> {
  ctx: Context
  input: Input
  /** The name of the procedure. */
  path: string
}

export type Resolver<Input, Output> = (options: Options<Input>) => Promise<Output>

type Maker = 'paged' | 'write' | 'idempotentWrite'

/** Records which function made a resolver, and returns it: the start compares it with `restMeta`. */
export const madeBy = <Made extends object>(maker: Maker, resolver: Made): Made =>
  Object.assign(resolver, { maker })

/** Returns which function made a resolver; undefined for any other resolver. */
export const makerOf = (resolver: object & { maker?: Maker }): Maker | undefined => resolver.maker

/** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
export function checkOutput(schema: z.ZodType, output: unknown): unknown {
  const { success, data, error } = schema.safeParse(output)
  if (!success) throw problem('internal', error)
  return data
}
