/** The context of a call: `ctx` in procedures, on both surfaces. */
import type { Deadline } from '../../db/deadline.ts'
import type { Idempotency } from '../idempotency/store.ts'
import type { Caller } from '../keys/key.ts'

/** The type of `ctx.stores`. Each resource declares its own store here, as petstore/stores.ts does. */
// biome-ignore lint/suspicious/noEmptyInterface: resources add to it.
export interface Stores {}

export interface Context {
  /** The caller, whose API key allows the call: see `authorize`. */
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
  nextCursor: bigint | undefined
}
