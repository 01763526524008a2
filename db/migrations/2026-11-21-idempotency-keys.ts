/** The table of Idempotency-Keys and the outputs of their requests. The second index finds expired keys. */
import { sql } from 'kysely'
import { createTable, type Database } from '../columns.ts'

export const tables = ['idempotency_keys']

export const up = (db: Database): Promise<void> =>
  createTable(db, 'idempotency_keys', (table) =>
    table
      .addColumn('api_key_id', 'bigint', (column) => column.notNull())
      .addColumn('key_hash', 'char(64)', (column) => column.notNull())
      .addColumn('operation', 'varchar(64)', (column) => column.notNull())
      .addColumn('fingerprint', 'char(64)', (column) => column.notNull())
      // MySQL's `text` has 64 KiB, which an output may exceed. SQLite takes the name for a text's.
      .addColumn('answer', sql`mediumtext`, (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addUniqueConstraint('idempotency_keys_key', ['api_key_id', 'key_hash'])
      .addUniqueConstraint('idempotency_keys_created_at', ['created_at', 'id']),
  )
