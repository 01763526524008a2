/** Brings a database to the newest schema, and tells whether it is there. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import { DatabaseUnavailableError, DuplicateError } from './errors.ts'
import type { Database } from './tables.ts'

const migrationFolder = path.join(import.meta.dirname, 'migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })

/** How often migrations are tried, and the milliseconds between two attempts. */
const ATTEMPTS = 5
const INTERVAL = 200

/**
 * Runs the pending migrations and gives their names. It holds Kysely's lock meanwhile, so that
 * many instances may start at once. In a Galera cluster the lock counts on one node only: who
 * is overtaken by an instance on another node goes on with what is still to do. That is why a
 * migration must be such that it may run twice. Throws what stopped a migration.
 */
export async function migrate(db: Database): Promise<string[]> {
  // Also where a newer release has migrated further, which Kysely would take for a corruption.
  if (await isCurrent(db).catch(() => false)) return []
  const names: string[] = []
  for (let attempt = 1; ; attempt++) {
    const { error, results = [] } = await new Migrator({ db, provider }).migrateToLatest()
    const done = results.filter(({ status }) => status === 'Success')
    names.push(...done.map(({ migrationName }) => migrationName))
    if (!error) return names
    const wasOvertaken =
      error instanceof DuplicateError ||
      (error instanceof DatabaseUnavailableError && error.hadNoEffect)
    if (!wasOvertaken || attempt === ATTEMPTS) throw error
    await setTimeout(INTERVAL * (0.5 + Math.random()))
  }
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
const migrations = () => (known ??= provider.getMigrations().catch(forget))

// A folder that cannot be read now may be readable later: the failure is not remembered.
function forget(error: unknown): never {
  known = undefined
  throw error
}
