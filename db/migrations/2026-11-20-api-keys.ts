/** The table of API keys, which are found by their hash. Times are milliseconds since 1970. */
import { createTable, type Database } from '../columns.ts'

export const tables = ['api_keys']

export const up = (db: Database): Promise<void> =>
  createTable(db, 'api_keys', (table) =>
    table
      .addColumn('name', 'varchar(255)', (column) => column.notNull())
      .addColumn('prefix', 'varchar(32)', (column) => column.notNull())
      .addColumn('hash', 'char(64)', (column) => column.notNull().unique())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint')
      .addColumn('revoked_at', 'bigint')
      .addColumn('last_used_at', 'bigint')
      .addColumn('read_only', 'bigint', (column) => column.notNull()),
  )
