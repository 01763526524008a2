/** The catalogue. Both indexes give a page in order: of all pets, and of those with one status. */
import type { Kysely } from 'kysely'
import { idColumn, tableOptions } from '../columns.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('pets')
    .ifNotExists()
    .addColumn('id', ...idColumn(db))
    .addColumn('name', 'varchar(255)', (column) => column.notNull())
    .addColumn('category_id', 'bigint', (column) => column.notNull())
    .addColumn('status', 'varchar(16)', (column) => column.notNull())
    // An index by another name: only constraints can be written inside `create table` on both
    // engines, and what is made in one statement cannot be left half made.
    .addUniqueConstraint('pets_status_id', ['status', 'id'])
    .modifyEnd(await tableOptions(db))
    .execute()
}
