/** Databases with 100,000 pets, and the speed of the disk. */
import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { openSql, type Sql } from '../test/support/sql.ts'
import { PETS, randomPet, repeatable } from './cases.ts'
import { type Checkout, KEYS_PROGRAM } from './service.ts'

/** The number of pets that one statement inserts. */
const BATCH = 1_000

/** A database with pets and a valid API key. */
export interface BenchDatabase {
  url: string
  key: string
  sql: Sql
  /** The name and the version of the engine. */
  version: string
  /** The process of the server; undefined for the embedded database. */
  pid: number | undefined
  /** Bytes of one pet on disk, with its indexes. */
  bytesPerPet: number
  /** The number of statements since its start, and of inserts among them; 0 on SQLite. */
  countStatements(): Promise<{ statements: number; inserts: number }>
}

/** An empty database, and whose programs give it its schema. */
interface Empty {
  url: string
  /** The process of the server; undefined for the embedded database. */
  pid: number | undefined
  checkout: Checkout
  /** The parent of temporary folders. */
  folder: string
}

/** Fills an empty database with the programs of a checkout and plain SQL. */
export async function fillDatabase({ url, pid, checkout, folder }: Empty): Promise<BenchDatabase> {
  const isSqlite = url.startsWith('sqlite:')
  const { PATH = '', HOME = '' } = process.env
  const { stdout } = await promisify(execFile)(
    checkout.node,
    [path.join(checkout.root, KEYS_PROGRAM), 'create', 'benchmark', '--expires', '90d'],
    {
      cwd: await mkdtemp(path.join(folder, 'keys-')), // no .env file of a checkout is used
      env: { PATH, HOME, DATABASE_URL: isSqlite ? `${url}?create` : url },
    },
  )
  const sql = await openSql(url)
  const random = repeatable()
  for (let first = 1; first <= PETS; first += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, index) => {
      const { name, categoryId, status } = randomPet(random)
      return `(${first + index}, '${name}', ${categoryId}, '${status}')`
    })
    await sql(`insert into pets (id, name, category_id, status) values ${rows}`)
  }
  const { version, bytes } = isSqlite ? await describeSqlite(sql) : await describeMysql(sql)
  return {
    url,
    key: stdout.trim(),
    sql,
    version,
    pid,
    bytesPerPet: bytes / PETS,
    async countStatements() {
      if (isSqlite) return { statements: 0, inserts: 0 }
      const rows = await sql(
        `show global status where Variable_name in ('Questions', 'Com_insert')`,
      )
      const count = (name: string) =>
        Number(rows.find((row) => row.Variable_name === name)?.Value ?? Number.NaN)
      return { statements: count('Questions'), inserts: count('Com_insert') }
    },
  }
}

async function describeSqlite(sql: Sql): Promise<{ version: string; bytes: number }> {
  const [row] = await sql(
    `select sqlite_version() as version, page_count * page_size as bytes
     from pragma_page_count(), pragma_page_size()`,
  )
  return { version: `SQLite ${row?.version}`, bytes: Number(row?.bytes) }
}

async function describeMysql(sql: Sql): Promise<{ version: string; bytes: number }> {
  await sql('analyze table pets')
  const [row] = await sql(
    `select version() as version, data_length + index_length as bytes from information_schema.tables
     where table_schema = database() and table_name = 'pets'`,
  )
  const version = String(row?.version)
  const [number = version] = version.split('-')
  return {
    version: `${version.includes('MariaDB') ? 'MariaDB' : 'MySQL'} ${number}`,
    bytes: Number(row?.bytes),
  }
}

/**
 * Fills a database up to `count` pets, a multiple of 100,000: three of five are available, the others
 * sold, and one in a million is pending. The engine copies the pets itself.
 */
export async function growDatabase({ sql, url }: BenchDatabase, count: number): Promise<void> {
  const isSqlite = url.startsWith('sqlite:')
  await sql(`delete from pets where id > ${PETS}`) // pets of an earlier load
  await sql(`update pets set status = 'sold' where status = 'pending'`)
  for (let first = PETS; first < count; first += PETS) {
    await sql(
      `insert into pets (id, name, category_id, status)
       select id + ${first}, name, category_id, status from pets where id <= ${PETS}`,
    )
  }
  await sql(`update pets set status = 'pending' where id % 1000000 = ${PETS / 2}`)
  // MySQL and MariaDB update their statistics in the background; SQLite does so only on request.
  if (!isSqlite) await sql('analyze table pets')
}

/** Inserts per second that one connection of SQLite commits on this disk, each with its own fsync. */
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
