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

/** Returns a driver. `open` runs before the first connection, and `close` at the end. */
export function createDriver(
  connect: () => Connection,
  { open = async () => {}, close }: { open?: () => Promise<void>; close: () => Promise<void> },
): Driver {
  return {
    init: open,
    async acquireConnection() {
      refuseInTransaction()
      return connect()
    },
    beginTransaction: (connection: Connection) => connection.begin(),
    commitTransaction: (connection: Connection) => connection.commit(),
    rollbackTransaction: (connection: Connection) => connection.rollback(),
    releaseConnection: (connection: Connection) => connection.release(),
    destroy: close,
  }
}
