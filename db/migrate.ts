/** Brings a database to the newest schema. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import type { Database } from './tables.ts'

function migrator(db: Database): Migrator {
  const migrationFolder = path.join(import.meta.dirname, 'migrations')
  return new Migrator({ db, provider: new FileMigrationProvider({ fs, path, migrationFolder }) })
}

/**
 * Runs the pending migrations and gives their names. It holds Kysely's lock meanwhile, so that
 * many instances may start at once. Throws what stopped a migration.
 */
export async function migrate(db: Database): Promise<string[]> {
  const { error, results = [] } = await migrator(db).migrateToLatest()
  if (error) throw error
  return results.map((result) => result.migrationName)
}
