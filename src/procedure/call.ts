/**
 * The procedures of a router, and their calls. tRPC's own call costs 20 µs, because it copies its options
 * five times. Here the input, the resolver and the output are called directly, which costs 1 µs.
 */
import type { AnyTRPCRouter } from '@trpc/server'
import type { z } from 'zod'
import { problem, problemOfInput } from '../errors/problem.ts'
import type { Context, Maker, Resolver } from './context.ts'
import type { RestMeta } from './procedure.ts'

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // the check of `rest` below leaves no subscriptions
  meta?: { rest?: RestMeta }
  middlewares: unknown[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver: Resolver<unknown, unknown> & { maker?: Maker }
}

export type Procedure = ReturnType<typeof procedureOf>

/** Returns the procedures of a router. Throws TypeError for one with other parts than a procedure here has. */
export const proceduresOf = (router: AnyTRPCRouter): Procedure[] =>
  Object.entries<{ _def: unknown }>(router._def.procedures).map(([name, { _def }]) =>
    procedureOf(name, _def as Definition),
  )

function procedureOf(name: string, definition: Definition) {
  const { type, meta, middlewares, inputs, output, resolver } = definition
  const [input] = inputs
  const rest = meta?.rest
  const { maker } = resolver
  // tRPC counts the input, the output and the resolver as middlewares.
  if (!rest || !input || !output || middlewares.length !== 3) {
    throw new TypeError(
      `The procedure ${name} needs .meta(restMeta({ … })), one .input(…) and one .output(…), and no .use(…)`,
    )
  }
  if ((type === 'query') !== (maker === undefined || maker === 'paged')) {
    throw new TypeError(
      `The procedure ${name} must be made by write(…) or idempotentWrite(…) if it is a mutation, and by neither if it is a query`,
    )
  }
  /** Calls the procedure and returns its output. Throws the errors of the procedure. */
  const run = async (ctx: Context, raw: unknown): Promise<unknown> => {
    const { success, data, error } = input.safeParse(raw)
    if (!success) throw problemOfInput(error)
    const made = await resolver({ ctx, input: data, path: name, output })
    // `write` has checked it before the commit. A stored output may be of an earlier release.
    return type === 'mutation' ? made : checkOutput(output, made)
  }
  return { name, type, rest, input, output, maker, run }
}

/** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
export function checkOutput(schema: z.ZodType, output: unknown): unknown {
  const { success, data, error } = schema.safeParse(output)
  if (!success) throw problem('internal', error)
  return data
}
