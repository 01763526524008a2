/** Column types whose spelling differs between the engines, for the migrations. */
import { type ColumnDefinitionBuilder, type Kysely, SqliteAdapter, sql } from 'kysely'

const isSqlite = (db: Kysely<unknown>) => db.getExecutor().adapter instanceof SqliteAdapter

/** An int64 primary key that the engine assigns, ever greater, never used twice. */
export function idColumn(db: Kysely<unknown>) {
  // SQLite's row id, which is int64, goes by the name "integer" only.
  const type = isSqlite(db) ? ('integer' as const) : ('bigint' as const)
  const define = (column: ColumnDefinitionBuilder) => column.autoIncrement().primaryKey()
  return [type, define] as const
}

/** What follows `create table (…)`: on MySQL the character set that holds every Unicode text. */
export function tableOptions(db: Kysely<unknown>) {
  return isSqlite(db) ? sql`` : sql`character set utf8mb4 collate utf8mb4_bin`
}
