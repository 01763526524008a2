/** Columns, options and indexes of tables, for the migrations. */
import type { ColumnDataType, ColumnDefinitionBuilder, Kysely } from 'kysely'
import { engineOf } from './engine.ts'

/** An int64 primary key that the engine assigns, ever greater, never used twice. */
export function idColumn(db: Kysely<unknown>) {
  const define = (column: ColumnDefinitionBuilder) => column.autoIncrement().primaryKey()
  return [engineOf(db).idType, define] as const
}

/** What follows `create table (…)`: every text column holds all of Unicode, compared exactly. */
export const tableOptions = (db: Kysely<unknown>) => engineOf(db).tableOptions(db)

/**
 * Adds a column that may be null, because instances of the release before do not write it, unless it
 * is there: a migration may run twice, on two nodes of a cluster even at the same moment.
 */
export async function addColumn(
  db: Kysely<unknown>,
  table: string,
  column: string,
  type: ColumnDataType,
): Promise<void> {
  const isThere = async () => {
    const tables = await db.introspection.getTables()
    const columns = tables.find(({ name }) => name === table)?.columns ?? []
    return columns.some(({ name }) => name === column)
  }
  await unlessThere(isThere, () => db.schema.alterTable(table).addColumn(column, type).execute())
}

/**
 * Adds an index to a table, by its own name, unless it is there. Columns stand in the order in which
 * they are compared: first those that a filter wants equal, then those of the order of a list. Throws
 * DuplicateError for a unique index where two rows are alike.
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
  const isThere = () => engineOf(db).hasIndex(db, table, name)
  await unlessThere(isThere, () => index.execute())
}

/** Makes something unless it is there; another node may make it at the same moment. */
async function unlessThere(isThere: () => Promise<boolean>, make: () => Promise<void>) {
  if (await isThere()) return
  try {
    await make()
  } catch (error) {
    if (!(await isThere())) throw error
  }
}
