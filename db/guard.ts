/** The guard of transactions: code that would wait for the session that its own transaction holds fails instead. */
import { AsyncLocalStorage } from 'node:async_hooks'

const storage = new AsyncLocalStorage<true>()

const OUTSIDE =
  'This code runs in a transaction and used another connection, which may wait for the one that the transaction holds: use the stores of the call that the work receives'

/** Runs the work of a transaction. Code that it starts belongs to the transaction, even if that code runs later. */
export const guarded = <Result>(work: () => Promise<Result>): Promise<Result> =>
  storage.run(true, work)

export const isGuarded = (): boolean => storage.getStore() !== undefined

/** Throws in the work of a transaction. A check takes nanoseconds. */
export function refuseInTransaction(): void {
  if (storage.getStore()) throw new Error(OUTSIDE)
}
