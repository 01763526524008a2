/** What resolvers receive and return, on both surfaces. */
import type { z } from 'zod'
import type { Deadline } from '../../db/deadline.ts'
import type { Idempotency } from '../idempotency/store.ts'
import type { Caller } from '../keys/key.ts'

/** The type of `ctx.stores`. Each resource declares its own store here, as petstore/stores.ts does. */
// biome-ignore lint/suspicious/noEmptyInterface: resources add to it.
export interface Stores {}

/** The context of a call: `ctx` in procedures. */
export interface Context {
  /** The caller, whose API key allows the call. */
  caller: Caller
  /** The deadline of the call: an argument of every method of a store. */
  deadline: Deadline
  /** The stores; those of the transaction inside `write` and `idempotentWrite`. */
  stores: Stores
  /**
   * For `write` alone: runs `work` in a transaction, again after an attempt that certainly had no
   * effect. Throws the errors of `work`, and DatabaseUnavailableError.
   */
  transact<Result>(work: (stores: Stores) => Promise<Result>, deadline: Deadline): Promise<Result>
  /** For `idempotentWrite` alone. */
  idempotency: Idempotency<Stores>
  /** The header Idempotency-Key, unparsed, for `idempotentWrite` alone. */
  idempotencyHeader: string | undefined
  /** The cursor of the next page, set by `paged`. */
  nextCursor?: bigint | undefined
}

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
