/** Brings a database to the newest schema, and tells whether it is there. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import type { Database } from './tables.ts'

const migrationFolder = path.join(import.meta.dirname, 'migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })

/**
 * Runs the pending migrations and gives their names. It holds Kysely's lock meanwhile, so that
 * many instances may start at once. Throws what stopped a migration.
 */
export async function migrate(db: Database): Promise<string[]> {
  const { error, results = [] } = await new Migrator({ db, provider }).migrateToLatest()
  if (error) throw error
  return results.map((result) => result.migrationName)
}

/** Whether the newest migration has run; one query. */
export async function isCurrent(db: Database): Promise<boolean> {
  const newest = Object.keys(await migrations())
    .sort()
    .at(-1)
  const { rows } = await sql<{
    name: string
  }>`select max(name) as name from kysely_migration`.execute(db)
  const name = rows[0]?.name
  // A newer instance may have migrated further.
  return name !== undefined && newest !== undefined && name >= newest
}

let known: ReturnType<typeof provider.getMigrations> | undefined
const migrations = () => (known ??= provider.getMigrations())
