/** Tables, columns and indexes, for migrations. */
import type { ColumnDataType, Kysely } from 'kysely'
import { engineOf } from './engine.ts'
import { ExistsError } from './errors.ts'

/**
 * Returns a table to create, unless it exists: a migration may run twice. Its `id` is an int64 primary key:
 * ascending ids, none used twice. Its texts contain all of Unicode, compared exactly.
 */
export async function createTable(db: Kysely<unknown>, name: string) {
  const engine = engineOf(db)
  return db.schema
    .createTable(name)
    .ifNotExists()
    .addColumn('id', engine.idType, (column) => column.autoIncrement().primaryKey())
    .modifyEnd(await engine.tableOptions(db))
}

/**
 * Adds a column, unless the table has it: a migration may run twice, even concurrently on two nodes of a
 * cluster. The column may be null, because instances of the previous release do not write it.
 */
export async function addColumn(
  db: Kysely<unknown>,
  table: string,
  column: string,
  type: ColumnDataType,
): Promise<void> {
  await unlessExists(db.schema.alterTable(table).addColumn(column, type))
}

/**
 * Adds an index to a table, unless the table has one with this name: an index that changes needs a new
 * name, which begins with that of the table, because SQLite has one index of a name in the whole database.
 * The first columns are those that a filter compares for equality, then follow those of the order of a list.
 * Throws DuplicateError for a unique index if two rows are equal.
 * @public The next migration with an index needs it; that of test/visits has one.
 */
export async function addIndex(
  db: Kysely<unknown>,
  table: string,
  name: string,
  columns: string[],
  { unique = false }: { unique?: boolean } = {},
): Promise<void> {
  const create = db.schema.createIndex(name).on(table).columns(columns)
  await unlessExists(unique ? create.unique() : create)
}

async function unlessExists(create: { execute(): Promise<void> }) {
  try {
    await create.execute()
  } catch (error) {
    if (!(error instanceof ExistsError)) throw error
  }
}
