/**
 * Calls of procedures. tRPC's middleware chain costs 20 µs a call, because it copies its options five
 * times. So if the key check is the only middleware of a procedure, its input, resolver and output are
 * called directly, which costs 1 µs.
 */
import type { AnyTRPCProcedure } from '@trpc/server'
import type { z } from 'zod'
import { problemOfInput } from '../errors/problem.ts'
import type { Context } from '../procedure/context.ts'
import { isKeyCheck } from '../procedure/procedure.ts'
import type { RestMeta } from '../procedure/rest-meta.ts'
import { checkOutput, makerOf } from '../procedure/write.ts'

/** Calls a procedure and returns its output. Throws the errors of the procedure. */
export type Run = (context: Context, input: unknown) => Promise<unknown>

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // there are no subscriptions: see operationsOf
  meta?: { rest?: RestMeta }
  middlewares: ((...args: never[]) => unknown)[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver(options: object): Promise<unknown>
}

export const definitionOf = (procedure: AnyTRPCProcedure): Definition =>
  procedure._def as unknown as Definition

// tRPC adds a middleware for each input and output.
const isParser = (middleware: object): boolean => '_type' in middleware

/** Returns the function that calls a procedure, for a caller whose API key the pipeline has checked. */
export function runOf(name: string, procedure: AnyTRPCProcedure): Run {
  const { type, middlewares, inputs, output, resolver } = definitionOf(procedure)
  const [input] = inputs
  const schemas = input && output && { input, output }
  // The second one is the resolver.
  const [first, , ...others] = middlewares.filter((middleware) => !isParser(middleware))
  const isPlain = first !== undefined && isKeyCheck(first) && others.length === 0
  if (!isPlain || !schemas || inputs.length > 1) {
    const rest = { path: name, type, signal: undefined, batchIndex: 0 }
    return async (ctx, input) => {
      return await procedure({ ...rest, ctx: { ...ctx, schemas }, getRawInput: async () => input })
    }
  }
  const isWrite = makerOf(resolver) !== undefined
  return async (ctx, raw) => {
    const parsed = input.safeParse(raw)
    if (!parsed.success) throw problemOfInput(parsed.error)
    const options = { input: parsed.data, path: name, type, signal: undefined }
    // A mutation checks its output itself, before its commit. A stored output may be of an earlier release.
    if (isWrite) return await resolver({ ...options, ctx: { ...ctx, schemas } })
    return checkOutput(output, await resolver({ ...options, ctx }))
  }
}
