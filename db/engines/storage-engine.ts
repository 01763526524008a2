/** Refuses tables that cannot roll back. Those that a session makes can: see mysql-session.ts. */
import { sql } from 'kysely'
import { isSqlite } from '../columns.ts'
import { DatabaseUnavailableError } from '../errors.ts'
import type { Database } from '../tables.ts'

/** What else is in the database is not for the service to judge. */
const TABLES = ['api_keys', 'idempotency_keys', 'pets', 'kysely_migration', 'kysely_migration_lock']

/**
 * Throws DatabaseUnavailableError, with the remedy, when a table of the service was made with, or
 * moved to, another storage engine than InnoDB: TiDB and Vitess report that name too.
 * https://dev.mysql.com/doc/refman/9.4/en/information-schema-tables-table.html
 */
export async function requireInnodb(db: Database): Promise<void> {
  if (isSqlite(db)) return
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = database() and table_name in (${sql.join(TABLES)}) and engine <> 'InnoDB'
  `.execute(db)
  if (rows.length === 0) return
  const remedy = rows.map(({ name }) => `alter table ${name} engine = InnoDB`).join('; ')
  const mistake = new Error(`Tables must have the storage engine InnoDB: ${remedy}`)
  throw new DatabaseUnavailableError(mistake, true)
}
