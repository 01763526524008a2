/** Resolvers: their options, the function of this folder that made one, and what they return. */
import type { z } from 'zod'
import { problem } from '../errors/catalogue.ts'
import { Problem } from '../errors/problem.ts'
import type { Context } from './context.ts'

/** The options of a tRPC resolver, as far as this folder uses them. */
export interface Options<Input> {
  ctx: Context
  input: Input
  /** The name of the procedure. */
  path: string
  /** The schema of the output, by which a mutation checks its output before its commit. */
  output?: z.ZodType
}

export type Resolver<Input, Output> = (options: Options<Input>) => Promise<Output>

export type Maker = 'paged' | 'write' | 'idempotentWrite'

/** Records on a resolver which function made it: the surfaces and the document depend on it. */
export const madeBy = <Made extends object>(maker: Maker, resolver: Made): Made =>
  Object.assign(resolver, { maker })

/** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
export function checkOutput(schema: z.ZodType, output: unknown): unknown {
  const { success, data, error } = schema.safeParse(output)
  if (!success) throw problem('internal', error)
  return data
}

/** Returns the value. Throws NOT_FOUND with this message if it is undefined. */
export function found<Value>(value: Value | undefined, message: string): Value {
  if (value === undefined) throw new Problem('NOT_FOUND', message)
  return value
}
