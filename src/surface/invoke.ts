/**
 * Calls of procedures. tRPC's own call costs 20 µs, because it copies its options five times. Here the
 * input, the resolver and the output of a procedure are called directly, which costs 1 µs.
 */
import type { AnyTRPCProcedure } from '@trpc/server'
import type { z } from 'zod'
import { problemOfInput } from '../errors/catalogue.ts'
import type { Context } from '../procedure/context.ts'
import { checkOutput } from '../procedure/resolver.ts'
import type { RestMeta } from '../procedure/rest-meta.ts'

/** Calls a procedure and returns its output. Throws the errors of the procedure. */
export type Run = (context: Context, input: unknown) => Promise<unknown>

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // there are no subscriptions: see operationsOf
  meta?: { rest?: RestMeta }
  middlewares: unknown[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver(options: object): Promise<unknown>
}

export const definitionOf = (procedure: AnyTRPCProcedure): Definition =>
  procedure._def as unknown as Definition

/** What tRPC counts as middlewares: the input, the output and the resolver. */
const PARTS = 3

/** Returns the function that calls a procedure. Throws TypeError for a procedure with other parts. */
export function runOf(name: string, procedure: AnyTRPCProcedure): Run {
  const { type, middlewares, inputs, output, resolver } = definitionOf(procedure)
  const [input] = inputs
  if (!input || !output || middlewares.length !== PARTS) {
    throw new TypeError(
      `The procedure ${name} needs one .input(…) and one .output(…), and no .use(…)`,
    )
  }
  const schemas = { input, output }
  return async (ctx, raw) => {
    const parsed = input.safeParse(raw)
    if (!parsed.success) throw problemOfInput(parsed.error)
    const options = { input: parsed.data, path: name, type, signal: undefined }
    // A mutation checks its output itself, before its commit. A stored output may be of an earlier release.
    if (type === 'mutation') return await resolver({ ...options, ctx: { ...ctx, schemas } })
    return checkOutput(output, await resolver({ ...options, ctx }))
  }
}
