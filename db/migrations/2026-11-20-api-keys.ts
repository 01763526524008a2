/** The table of API keys, which are found by their hash. Times are milliseconds since 1970. */
import type { Kysely } from 'kysely'
import { createTable } from '../columns.ts'

export const tables = ['api_keys']

export async function up(db: Kysely<unknown>): Promise<void> {
  const table = await createTable(db, 'api_keys')
  await table
    .addColumn('name', 'varchar(255)', (column) => column.notNull())
    .addColumn('prefix', 'varchar(32)', (column) => column.notNull())
    .addColumn('hash', 'char(64)', (column) => column.notNull().unique())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .addColumn('last_used_at', 'bigint')
    .addColumn('read_only', 'bigint', (column) => column.notNull())
    .execute()
}
