/** Tables, columns and indexes, for migrations. */
import type { ColumnDataType, CreateTableBuilder } from 'kysely'
import type { Query } from './builder.ts'
import type { Database } from './database.ts'
import { ExistsError } from './errors.ts'
import { execute } from './statement.ts'

export type { Database }

/**
 * Creates a table with these columns, unless it exists: a migration may run twice. Its `id` is an int64 primary key:
 * ascending ids, none used twice. Its texts contain all of Unicode, compared exactly.
 */
export async function createTable(
  db: Database,
  name: string,
  addColumns: (table: CreateTableBuilder<string, 'id'>) => Query,
): Promise<void> {
  const { kysely, engine } = db
  const table = kysely.schema
    .createTable(name)
    .ifNotExists()
    .addColumn('id', engine.idType, (column) => column.autoIncrement().primaryKey())
    .modifyEnd(await engine.tableOptions(db))
  await execute(db, addColumns(table))
}

/**
 * Adds a column, unless the table has it: a migration may run twice, even concurrently on two nodes of a
 * cluster. The column may be null, because instances of the previous release do not write it.
 */
export async function addColumn(
  db: Database,
  table: string,
  column: string,
  type: ColumnDataType,
): Promise<void> {
  await unlessExists(db, db.kysely.schema.alterTable(table).addColumn(column, type))
}

/**
 * Adds an index to a table, unless the table has one with this name: an index that changes needs a new
 * name, which begins with that of the table, because SQLite has one index of a name in the whole database.
 * The first columns are those that a filter compares for equality, then follow those of the order of a list.
 * Throws DuplicateError for a unique index if two rows are equal.
 * @public The next migration with an index needs it; that of test/visits has one.
 */
export async function addIndex(
  db: Database,
  table: string,
  name: string,
  columns: string[],
  { unique = false }: { unique?: boolean } = {},
): Promise<void> {
  const create = db.kysely.schema.createIndex(name).on(table).columns(columns)
  await unlessExists(db, unique ? create.unique() : create)
}

async function unlessExists(db: Database, create: Query): Promise<void> {
  try {
    await execute(db, create)
  } catch (error) {
    if (!(error instanceof ExistsError)) throw error
  }
}
