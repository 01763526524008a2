/** What every call is made with, on both surfaces. */
import type { Deadline } from '../../db/deadline.ts'
import type { Idempotency } from '../idempotency/store.ts'
import type { Auth } from '../keys/auth.ts'
import type { CallTrace } from '../observe/tracing.ts'
import type { Transact } from './transact.ts'

/** The stores that procedures find in `ctx.stores`. Each resource declares its own, as petstore/stores.ts does. */
// biome-ignore lint/suspicious/noEmptyInterface: resources add to it.
export interface Stores {}

/** A caller with a valid API key. */
export type Caller = Extract<Auth, { kind: 'caller' }>

export interface Context {
  /** Whose key the call came with. */
  auth: Auth | undefined
  /** The same once the key was checked. */
  caller: Caller | undefined
  /** When the call is to be given up; every store takes it. */
  deadline: Deadline
  /** The span of the request; undefined where nothing is traced. */
  trace: CallTrace | undefined
  /** Inside `write` and `once` those of their transaction. */
  stores: Stores
  /** What `write` uses; procedures need not. */
  transact: Transact<Stores>
  idempotency: Idempotency<Stores>
  /** The Idempotency-Key header as it was sent; only `once` looks at it. */
  idempotencyHeader: string | undefined
  /** Where a paged procedure leaves the cursor of the next page; see `paged`. */
  page: { next: bigint | string | undefined }
}
