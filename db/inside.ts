/** Knows which code runs inside a transaction, so that what would wait for it fails instead. */
import { AsyncLocalStorage } from 'node:async_hooks'

interface Transaction {
  isOver: boolean
  /** Why the server ended the transaction: what came after it would be no part of it. */
  failure: unknown
}

const storage = new AsyncLocalStorage<Transaction>()

const OUTSIDE =
  'This code runs inside a transaction and reached outside it, where it would wait for the connection that the transaction holds: use the stores of the ctx that the resolver was given'
const OVER = 'The transaction is over: its work must await every statement'

/** Runs the work of a transaction. Code that it starts belongs to it, also when it runs later. */
export async function runInside<Result>(work: () => Promise<Result>): Promise<Result> {
  const transaction: Transaction = { isOver: false, failure: undefined }
  try {
    return await storage.run(transaction, work)
  } finally {
    transaction.isOver = true
  }
}

/** Whether this code runs inside a transaction. */
export const isInside = (): boolean => storage.getStore() !== undefined

/** Throws inside a transaction. Called where a connection is taken; a look costs nanoseconds. */
export function refuseInside(): void {
  if (isInside()) throw new Error(OUTSIDE)
}

/** Throws when the transaction that this code belongs to is over, or was ended by the server. */
export function refuseAfterEnd(): void {
  const transaction = storage.getStore()
  if (transaction?.isOver) throw new Error(OVER)
  if (transaction?.failure) throw transaction.failure
}

/** Notes that a statement of the transaction failed such that none may follow. */
export function noteFailure(error: unknown): void {
  const transaction = storage.getStore()
  if (transaction) transaction.failure ??= error
}
