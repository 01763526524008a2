/** Databases with 100,000 pets, and what the disk below them can do. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { runToEnd } from '../test/support/process.ts'
import { openSql, type Sql } from '../test/support/sql.ts'
import { PETS, randomPet, repeatable } from './cases.ts'
import { KEYS_PROGRAM } from './service.ts'

/** How many pets one statement inserts. */
const BATCH = 1_000

/** A database with pets, and a key that the service takes. */
export interface BenchDatabase {
  url: string
  key: string
  sql: Sql
  /** The server's, or the library's. */
  version: string
}

/** Fills an empty database, by the programs of the service and plain SQL. */
export async function fillDatabase(url: string): Promise<BenchDatabase> {
  const { code, stdout, stderr } = await runToEnd(KEYS_PROGRAM, { DATABASE_URL: url }, [
    'create',
    'benchmark',
  ])
  if (code !== 0) throw new Error(`No key could be made: ${stderr}`)
  const sql = await openSql(url)
  const random = repeatable()
  for (let first = 1; first <= PETS; first += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, index) => {
      const { name, categoryId, status } = randomPet(random)
      return `(${first + index}, '${name}', ${categoryId}, '${status}')`
    })
    await sql(`insert into pets (id, name, category_id, status) values ${rows}`)
  }
  const [row] = await sql(
    `select ${url.startsWith('sqlite:') ? 'sqlite_' : ''}version() as version`,
  )
  return { url, key: stdout.trim(), sql, version: String(row?.version) }
}

/**
 * How many times a second the disk takes what one creation writes on SQLite, three pages of a log
 * that is overwritten in place, and says that it is there (fsync).
 */
export function commitsPerSecond(folder: string): number {
  const PAGES = Buffer.alloc(3 * 4_096, 1)
  const LOG = 340 // 4 MB, SQLite's default: https://www.sqlite.org/pragma.html#pragma_wal_autocheckpoint
  const file = openSync(path.join(folder, 'disk'), 'w')
  const write = (commit: number) =>
    writeSync(file, PAGES, 0, PAGES.length, (commit % LOG) * PAGES.length)
  for (let commit = 0; commit < LOG; commit++) write(commit)
  fsyncSync(file)
  const start = performance.now()
  let commits = 0
  while (performance.now() - start < 1_000) {
    write(commits++)
    fsyncSync(file)
  }
  closeSync(file)
  return Math.round((commits * 1_000) / (performance.now() - start))
}
