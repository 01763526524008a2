/**
 * Transactions, and the connections that run them. Code that would wait for a connection that its own
 * transaction holds fails instead.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'
import type { Database } from './tables.ts'

/** A statement with options for the driver. Kysely passes the object to the connection unchanged. */
export interface Statement<Row = unknown> extends CompiledQuery<Row> {
  /** The deadline that ends the statement, also on the server. */
  deadline?: Deadline | undefined
  /** Whether the statement only reads, so that it does not wait behind writes; by default a `selectFrom` does, and raw SQL may write. */
  isRead?: boolean
  /** Throws NoConsecutiveIdsError if the server does not guarantee consecutive ids. */
  needsConsecutiveIds?: boolean
}

interface Transaction {
  isOver: boolean
  /** Why the database ended the transaction: a later statement would not be part of it. */
  failure: Error | undefined
  /** Its statements. It ends after them: of one that still runs, the connection would not know the end. */
  statements: Promise<unknown>[]
}

const storage = new AsyncLocalStorage<Transaction>()

const OUTSIDE =
  'This code runs in a transaction and used another connection, which may wait for the one that the transaction holds: use the stores of the ctx that the resolver received'
const OVER = 'The transaction is over: its work must await every statement'

/**
 * Runs work in a transaction, and returns its result after the commit. If it throws, the work had no effect,
 * unless the error says that it may have had one. Code that the work starts belongs to the transaction, even
 * if that code runs later. It must not use another connection, and must not begin another transaction: both
 * throw. Throws the failure of a statement even if the work ignores it, because the database has ended the
 * transaction. The deadlines of the statements limit the transaction: it begins with the first one.
 */
export async function inTransaction<Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  refuseInTransaction()
  return await db.transaction().execute(async (inside) => {
    const transaction: Transaction = { isOver: false, failure: undefined, statements: [] }
    const end = async () => {
      transaction.isOver = true
      await Promise.allSettled(transaction.statements)
    }
    try {
      const result = await storage.run(transaction, async () => await work(inside)).finally(end)
      if (transaction.failure) throw transaction.failure
      return result
    } catch (error) {
      // A server rolls back a transaction with its connection, so before the commit it has no effect.
      const isLost = error instanceof DatabaseUnavailableError && !error.hadNoEffect
      if (!isLost || error instanceof DatabaseTimeoutError) throw error
      throw new DatabaseUnavailableError(error.cause, true)
    }
  })
}

export const isInTransaction = (): boolean => storage.getStore() !== undefined

/** Throws in a transaction. A check takes nanoseconds. */
export function refuseInTransaction(): void {
  if (isInTransaction()) throw new Error(OUTSIDE)
}

/** A connection for one statement or one transaction of Kysely. */
export abstract class Connection implements DatabaseConnection {
  abstract execute<Row>(statement: Statement): Promise<QueryResult<Row>>
  abstract begin(): Promise<void>
  abstract commit(): Promise<void>
  abstract rollback(): Promise<void>
  /** Gives back what the connection holds. Never throws. */
  release(): void {}

  /** Throws if the transaction of the running code is over, or if the database has ended it. */
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const transaction = storage.getStore()
    if (transaction?.isOver) throw new Error(OVER)
    if (transaction?.failure) throw transaction.failure
    try {
      const statement = this.execute<Row>(query)
      transaction?.statements.push(statement)
      return await statement
    } catch (error) {
      if (transaction && error instanceof DatabaseUnavailableError) transaction.failure ??= error
      throw error
    }
  }

  streamQuery(): never {
    throw new Error('Not supported')
  }
}

/** Returns Kysely's driver, which opens nothing before the first statement. `close` runs at the end. */
export const createDriver = (connect: () => Connection, close: () => Promise<void>): Driver => ({
  async init() {},
  async acquireConnection() {
    refuseInTransaction()
    return connect()
  },
  beginTransaction: (connection: Connection) => connection.begin(),
  commitTransaction: (connection: Connection) => connection.commit(),
  rollbackTransaction: (connection: Connection) => connection.rollback(),
  releaseConnection: async (connection: Connection) => connection.release(),
  destroy: close,
})
