/** A router of plain functions for tRPC's own adapters: of JSON lines, and in the client's stand-in. */
import type { AnyTRPCRouter } from '@trpc/server'
import { decodeInput } from './input.ts'

/** A function in place of a procedure, as the adapter calls it. */
interface Procedure<Context> {
  type: 'query' | 'mutation'
  call(context: Context, getInput: () => Promise<unknown>, batchIndex: number): Promise<unknown>
}

/** What the adapter calls it with. */
interface Called<Context> {
  ctx: Context
  getRawInput(): Promise<unknown>
  batchIndex: number
}

/**
 * Returns a router with these functions by name, and with the formats of another router. It is for tRPC's
 * adapters alone, which read the parts of a router that are set here: tRPC does not document them.
 */
export function routerOf<Context>(
  { _def }: AnyTRPCRouter,
  functions: Record<string, Procedure<Context>>,
): AnyTRPCRouter {
  const entries = Object.entries(functions).map(([name, { type, call }]) => {
    const procedure = ({ ctx, getRawInput, batchIndex }: Called<Context>) =>
      call(ctx, getRawInput, batchIndex)
    return [name, Object.assign(procedure, { _def: { type } })]
  })
  const { transformer } = _def._config
  const input = { ...transformer.input, deserialize: decodeInput }
  const _config = { ..._def._config, transformer: { ...transformer, input } }
  const procedures = Object.fromEntries(entries)
  return { _def: { ..._def, _config, procedures } } as unknown as AnyTRPCRouter
}
