/** Kysely's driver, for connections that control their own transactions. */
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { DatabaseUnavailableError } from '../errors.ts'
import type { Statement } from '../statement.ts'
import { recordFailure, refuseAfterEnd, refuseInTransaction } from '../transaction.ts'

export abstract class Connection implements DatabaseConnection {
  abstract execute<Row>(statement: Statement): Promise<QueryResult<Row>>
  abstract begin(): Promise<void>
  abstract commit(): Promise<void>
  abstract rollback(): Promise<void>
  abstract release(): Promise<void>

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    refuseAfterEnd()
    try {
      return await this.execute<Row>(query)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) recordFailure(error)
      throw error
    }
  }

  streamQuery(): never {
    throw new Error('Not supported')
  }
}

/** Returns a driver, which opens nothing before the first statement. `close` runs at the end. */
export const createDriver = (connect: () => Connection, close: () => Promise<void>): Driver => ({
  async init() {},
  async acquireConnection() {
    refuseInTransaction()
    return connect()
  },
  beginTransaction: (connection: Connection) => connection.begin(),
  commitTransaction: (connection: Connection) => connection.commit(),
  rollbackTransaction: (connection: Connection) => connection.rollback(),
  releaseConnection: (connection: Connection) => connection.release(),
  destroy: close,
})
