/** Columns, options and indexes of tables, for migrations. */
import type { ColumnDataType, ColumnDefinitionBuilder, Kysely } from 'kysely'
import { engineOf } from './engine.ts'

/** Returns the type and the definition of an int64 primary key: ascending ids, none used twice. */
export function idColumn(db: Kysely<unknown>) {
  const define = (column: ColumnDefinitionBuilder) => column.autoIncrement().primaryKey()
  return [engineOf(db).idType, define] as const
}

/** Returns the options of a table whose texts contain all of Unicode, compared exactly. */
export const tableOptions = (db: Kysely<unknown>) => engineOf(db).tableOptions(db)

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
  const exists = async () => {
    const tables = await db.introspection.getTables()
    const columns = tables.find(({ name }) => name === table)?.columns ?? []
    return columns.some(({ name }) => name === column)
  }
  await unlessExists(exists, () => db.schema.alterTable(table).addColumn(column, type).execute())
}

/**
 * Adds an index to a table, unless the table has one with this name. The first columns are those that a
 * filter compares for equality, then follow those of the order of a list. Throws DuplicateError for a
 * unique index if two rows are equal.
 */
export async function addIndex(
  db: Kysely<unknown>,
  table: string,
  name: string,
  columns: readonly string[],
  { unique = false }: { unique?: boolean } = {},
): Promise<void> {
  const create = db.schema
    .createIndex(name)
    .on(table)
    .columns([...columns])
  const index = unique ? create.unique() : create
  const exists = () => engineOf(db).hasIndex(db, table, name)
  await unlessExists(exists, () => index.execute())
}

async function unlessExists(exists: () => Promise<boolean>, create: () => Promise<void>) {
  if (await exists()) return
  try {
    await create()
  } catch (error) {
    // A concurrent migration may have created it.
    if (!(await exists())) throw error
  }
}
