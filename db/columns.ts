/** What differs between the engines in the definition of tables, for the migrations. */
import {
  type ColumnDataType,
  type ColumnDefinitionBuilder,
  type Kysely,
  SqliteAdapter,
  sql,
} from 'kysely'

/** Whether the database is the embedded engine. Nobody outside `db` needs to know. */
export const isSqlite = (db: Pick<Kysely<unknown>, 'getExecutor'>): boolean =>
  db.getExecutor().adapter instanceof SqliteAdapter

/** An int64 primary key that the engine assigns, ever greater, never used twice. */
export function idColumn(db: Kysely<unknown>) {
  // SQLite's row id, which is int64, goes by the name "integer" only.
  const type = isSqlite(db) ? ('integer' as const) : ('bigint' as const)
  const define = (column: ColumnDefinitionBuilder) => column.autoIncrement().primaryKey()
  return [type, define] as const
}

// The same under two names, in this order: MariaDB's, MySQL's. Both compare code points, and
// without padding: 'Graz' and 'Graz ' are two texts, as on SQLite.
const COLLATIONS = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']

/** What follows `create table (…)`: on MySQL the character set that holds every Unicode text. */
export async function tableOptions(db: Kysely<unknown>) {
  if (isSqlite(db)) return sql``
  const { rows } = await sql<{ Collation: string }>`show collation like 'utf8mb4%bin'`.execute(db)
  const known = rows.map(({ Collation }) => Collation)
  const collation = COLLATIONS.find((name) => known.includes(name)) ?? 'utf8mb4_bin'
  return sql`character set utf8mb4 collate ${sql.raw(collation)}`
}

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
  if (isSqlite(db)) return await index.ifNotExists().execute()
  const isThere = async () => {
    const { rows } =
      await sql`show index from ${sql.table(table)} where key_name = ${name}`.execute(db)
    return rows.length > 0
  }
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
