/** The migrations of the service, and the tables that they create. */
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import type { Database } from './database.ts'

export interface Migration {
  name: string
  /** The tables that it creates. */
  tables?: readonly string[]
  up(db: Database): Promise<void>
}

const files = await readdir(path.join(import.meta.dirname, 'migrations'))
const names = files.filter((file) => file.endsWith('.ts')).map((file) => path.basename(file, '.ts'))

/**
 * The migrations, in the alphabetical order of their names, in which they run. They are read once: an upgrade
 * may replace the files under a running process.
 */
export const MIGRATIONS: Migration[] = await Promise.all(
  names.sort().map(async (name) => ({ name, ...(await import(`./migrations/${name}.ts`)) })),
)

const tablesOf = (migrations: Migration[]) => migrations.flatMap(({ tables = [] }) => tables)

/** The tables that the migrations create. What has such a name in a new database is another program's. */
export const TABLES = tablesOf(MIGRATIONS)

/** Returns the tables of a database in which the migrations with these names have run, or all if none of them is ours. */
export function tablesAfter(executed: string[]): string[] {
  const ours = MIGRATIONS.filter(({ name }) => executed.includes(name))
  return ours.length > 0 ? tablesOf(ours) : TABLES
}
