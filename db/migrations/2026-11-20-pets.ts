/** The table of pets. Its two indexes order all pets, and the pets with one status. */
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
    // An index in the form of a constraint, because only constraints can be part of `create table` in all
    // databases. One statement leaves no incomplete table.
    .addUniqueConstraint('pets_status_id', ['status', 'id'])
    .modifyEnd(await tableOptions(db))
    .execute()
}
