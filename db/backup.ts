/** Backups of an embedded database, while other processes use it. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { connect } from './connect.ts'
import { refuseLeftovers } from './engines/sqlite/leftovers.ts'
import { migrate } from './migrate.ts'
import { CREATE } from './url.ts'

/** Copies all pages in one step. A copy in several steps starts again at each write of another process. */
const ALL_PAGES = 2 ** 31 - 1

/** Milliseconds that other processes may hold the database, and between two attempts. */
const LOCK_TIMEOUT = 30_000
const LOCK_INTERVAL = 5

/** BUSY, LOCKED, and 0: so `backup` reports both today, without a wait. */
const LOCKED = [0, 5, 6]

/**
 * Copies a snapshot of the database at `source` to a `file`, which exists only once it is complete. Writes
 * to the database do not wait. Throws for a damaged database, whose copy could not be restored, for a
 * file that exists, or one of SQLite's beside it, and for errors of the file system and of SQLite.
 */
export async function backUp(source: string, file: string): Promise<void> {
  const names = ['', '-journal', '-wal', '-shm'].map((suffix) => file + suffix)
  const taken = names.find((name) => existsSync(name))
  if (taken) throw new Error(`${taken} exists: choose another FILE`)
  await withCopy(source, file, (_copied, part) => {
    writeFileSync(file, '', { flag: 'wx' }) // throws if another backup was faster: a rename would replace its file
    renameSync(part, file)
  })
}

/**
 * Replaces the content of the database at `target` by a backup, in one transaction. Creates the database,
 * with its folder, if it is missing. Migrates both before. No id that the database assigned is assigned again,
 * except by chance those of creations at that very moment. Throws for a file that is not a complete database of
 * this service, for a target of another program, and for errors of the file system and of SQLite, without a change.
 */
export async function restore(target: string, file: string): Promise<void> {
  mkdirSync(path.dirname(target), { recursive: true })
  await withCopy(file, target, async (copied, part) => {
    // The migrations would complete an empty database. They add Idempotency-Keys to an early release's.
    copied.exec('select prefix, category_id from api_keys, pets limit 0')
    for (const database of [part, target]) {
      await using db = await connect(`sqlite:${database}${CREATE}`)
      await migrate(db)
    }
    copied.prepare('attach ? as replaced').run(target)
    copied.exec(`create temp table ids as select name, max(seq) as seq from
      (select * from main.sqlite_sequence union all select * from replaced.sqlite_sequence) group by name;
      delete from main.sqlite_sequence; insert into main.sqlite_sequence select name, seq from ids`)
    const sizeOf = (name: string) => copied.prepare(`pragma ${name}.page_size`).get()?.page_size
    if (sizeOf('main') !== sizeOf('replaced')) {
      // A database with a log keeps the size of its pages: https://sqlite.org/pragma.html#pragma_page_size
      copied.exec(`pragma main.journal_mode = delete; pragma main.page_size = ${sizeOf('replaced')};
        vacuum main`)
    }
    await copy(copied, target)
  })
}

/** Calls `use` with a checked copy of the database at `source`, one file in a folder beside `target`. */
async function withCopy(
  source: string,
  target: string,
  use: (copied: DatabaseSync, part: string) => Promise<void> | void,
): Promise<void> {
  refuseLeftovers(source)
  if (!existsSync(source)) throw new Error(`${source} does not exist`)
  // Another folder for each: a power failure leaves one, and two backups may have the same file.
  const folder = mkdtempSync(`${target}.part-`)
  const discard = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', discard) // a signal ends a command at once
  try {
    const part = path.join(folder, 'copy.db')
    writeFileSync(part, '', { mode: 0o600 }) // only the owner may read the names and hashes of keys
    using database = new DatabaseSync(source)
    await copy(database, part)
    using copied = new DatabaseSync(part)
    copied.exec('pragma journal_mode = delete') // one file, without a log
    // https://sqlite.org/pragma.html#pragma_integrity_check
    const { integrity_check } = copied.prepare('pragma integrity_check').get() ?? {}
    if (integrity_check !== 'ok') throw new Error('the database is damaged')
    await use(copied, part)
  } finally {
    process.off('exit', discard)
    discard()
  }
}

async function copy(source: DatabaseSync, target: string): Promise<void> {
  for (const end = performance.now() + LOCK_TIMEOUT; ; await setTimeout(LOCK_INTERVAL)) {
    try {
      await backup(source, target, { rate: ALL_PAGES })
      return
    } catch (cause) {
      if (!LOCKED.includes((cause as { errcode?: number }).errcode ?? -1)) throw cause
      // Without its cause, whose message is "not an error".
      if (performance.now() > end) throw new Error('other processes hold the database')
    }
  }
}
