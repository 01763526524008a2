/** Databases with 100,000 pets, and what the disk below them can do. */
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
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

/** Fills an empty database, made where it is an embedded one, by the programs of the service and plain SQL. */
export async function fillDatabase(url: string): Promise<BenchDatabase> {
  const isSqlite = url.startsWith('sqlite:')
  const { code, stdout, stderr } = await runToEnd(
    KEYS_PROGRAM,
    { DATABASE_URL: isSqlite ? `${url}?create` : url },
    ['create', 'benchmark'],
  )
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
  const [row] = await sql(`select ${isSqlite ? 'sqlite_' : ''}version() as version`)
  return { url, key: stdout.trim(), sql, version: String(row?.version) }
}

/** How many inserts a second one connection of SQLite commits on this disk, each with its own fsync. */
export function commitsPerSecond(folder: string): number {
  const database = new DatabaseSync(path.join(folder, 'commits.db'))
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  database.exec(
    'create table if not exists commits (id integer primary key autoincrement, name text)',
  )
  const insert = database.prepare('insert into commits (name) values (?)')
  const end = performance.now() + 1_000
  let commits = 0
  for (; performance.now() < end; commits++) insert.run('Rex')
  database.close()
  return commits
}
