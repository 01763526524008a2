/**
 * Calls procedures. tRPC's own way through the middlewares of a procedure costs 20 µs a call, since
 * it copies its options five times; where the key check is the only middleware of a procedure, the
 * input, the resolver and the output are called here one after another, which costs 1 µs.
 */
import type { AnyTRPCProcedure } from '@trpc/server'
import type { z } from 'zod'
import { internal, problemOfInput } from '../errors/problem.ts'
import type { Context } from '../procedure/context.ts'
import { isKeyCheck } from '../procedure/procedure.ts'

/** Calls a procedure. The input is read when the call begins. Throws what the procedure throws. */
export type Run = (context: Context, readInput: () => unknown) => Promise<unknown>

/** What tRPC keeps of a procedure, but declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation'
  middlewares: ((...args: never[]) => unknown)[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver(options: object): Promise<unknown>
}

/** Whether tRPC adds the middleware for an input or an output. */
const isParser = (middleware: object): boolean => '_type' in middleware

/** What calls a procedure of this name, for callers whose key was checked. */
export function runOf(name: string, procedure: AnyTRPCProcedure): Run {
  const definition = procedure._def as unknown as Definition
  const { type, middlewares, inputs, output, resolver } = definition
  const [input] = inputs
  const [first, , ...others] = middlewares.filter((middleware) => !isParser(middleware))
  const isPlain = first !== undefined && isKeyCheck(first) && others.length === 0
  if (!isPlain || !input || !output || inputs.length > 1) {
    return async (ctx, readInput) =>
      await procedure({
        ctx,
        getRawInput: async () => readInput(),
        path: name,
        type,
        signal: undefined,
        batchIndex: 0,
      })
  }
  return async (ctx, readInput) => {
    const parsed = input.safeParse(readInput())
    if (!parsed.success) throw problemOfInput(parsed.error)
    const given = await resolver({ ctx, input: parsed.data, path: name, type, signal: undefined })
    const checked = output.safeParse(given)
    if (!checked.success) throw internal(checked.error)
    return checked.data
  }
}
