/** Backups of an embedded database, while other processes use it. */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'

/** Copies all pages in one step. A copy in several steps starts again at each write of another process. */
const ALL_PAGES = 2 ** 31 - 1

/** Milliseconds that other processes may hold the database, and between two attempts. */
const LOCK_TIMEOUT = 30_000
const LOCK_INTERVAL = 5

/** BUSY, LOCKED, and 0: so `backup` reports both today, without a wait. */
const LOCKED = [0, 5, 6]

/** The ends of the names of a database, and of the files that SQLite creates beside it. */
const SUFFIXES = ['', '-journal', '-wal', '-shm']

/**
 * Copies a snapshot of the database at `path` to a `file`, which exists only once it is complete. Writes
 * to the database do not wait. Throws for a damaged database, whose copy could not be restored, for a
 * file that exists, or one of SQLite's beside it, and for errors of the file system and of SQLite.
 */
export async function backUp(path: string, file: string): Promise<void> {
  const taken = SUFFIXES.map((suffix) => file + suffix).find((name) => existsSync(name))
  if (taken) throw new Error(`${taken} exists: choose another FILE`)
  if (!existsSync(path)) throw new Error(`${path} does not exist`)
  await withCopy(path, file, (part) => {
    closeSync(openSync(file, 'wx')) // throws if another backup was faster: a rename would replace its file
    renameSync(part, file)
  })
}

/**
 * Replaces the content of the database at `path` by a backup, in one transaction. Creates the database,
 * with its folder, if it is missing. No id that the database assigned is assigned again. Throws for a file
 * that is not a complete database of this service, and for errors of the file system and of SQLite.
 * Nothing has changed then.
 */
export async function restore(path: string, file: string): Promise<void> {
  if (!existsSync(file)) throw new Error(`${file} does not exist`)
  mkdirSync(dirname(path), { recursive: true })
  await withCopy(file, path, async (part) => {
    using copied = new DatabaseSync(part)
    copied.prepare('select name from kysely_migration').get()
    copied.prepare('select id, name, prefix, hash, created_at from api_keys limit 1').get()
    if (existsSync(path)) keepIds(copied, path)
    else closeSync(openSync(path, 'wx', 0o600))
    await copy(copied, path)
  })
}

/** Makes the copy assign greater ids than the database at `path` did. Throws if their pages differ in size. */
function keepIds(copied: DatabaseSync, path: string): void {
  copied.prepare('attach ? as replaced').run(path)
  const tables = copied.prepare('select name from replaced.sqlite_schema').all()
  const sizeOf = (name: string) => copied.prepare(`pragma ${name}.page_size`).get()?.page_size
  if (tables.length > 0 && sizeOf('main') !== sizeOf('replaced')) {
    const sizes = `its pages have ${sizeOf('main')} bytes, those of the database ${sizeOf('replaced')}`
    throw new Error(`${sizes}: move the database away, and restore into a new one`)
  }
  if (!tables.some(({ name }) => name === 'sqlite_sequence')) return
  copied.exec(`create temp table ids as select name, max(seq) as seq
      from (select * from main.sqlite_sequence union all select * from replaced.sqlite_sequence) group by name;
    delete from main.sqlite_sequence; insert into main.sqlite_sequence select name, seq from ids`)
}

/** Calls `use` with a checked copy of the database at `source`, in a file beside `path`. */
async function withCopy(
  source: string,
  path: string,
  use: (part: string) => Promise<void> | void,
): Promise<void> {
  // Unique: a power failure leaves the part of its backup, and two backups may have the same file.
  const part = `${path}.${randomUUID()}.part`
  const discard = () => {
    for (const suffix of SUFFIXES) rmSync(part + suffix, { force: true })
  }
  process.once('exit', discard) // a signal ends a command at once
  try {
    using database = new DatabaseSync(source)
    closeSync(openSync(part, 'wx', 0o600)) // only the owner may read the names and hashes of keys
    await copy(database, part)
    using copied = new DatabaseSync(part)
    copied.exec('pragma journal_mode = delete') // one file, without a log
    // https://sqlite.org/pragma.html#pragma_integrity_check
    const { integrity_check } = copied.prepare('pragma integrity_check').get() ?? {}
    if (integrity_check !== 'ok') throw new Error('the database is damaged')
    copied.close()
    await use(part)
  } finally {
    process.off('exit', discard)
    discard()
  }
}

async function copy(source: DatabaseSync, path: string): Promise<void> {
  const end = performance.now() + LOCK_TIMEOUT
  for (;;) {
    try {
      await backup(source, path, { rate: ALL_PAGES })
      return
    } catch (cause) {
      if (!LOCKED.includes((cause as { errcode?: number }).errcode ?? -1)) throw cause
      if (performance.now() > end) throw new Error('other processes hold the database', { cause })
      await setTimeout(LOCK_INTERVAL)
    }
  }
}
