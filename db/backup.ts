/** Backups of an embedded database, while other processes use it. */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'

/** Copies all pages in one step. A copy in several steps starts again at each write of another process. */
const ALL_PAGES = 2 ** 31 - 1

/** Milliseconds that other processes may hold the database. */
const LOCK_TIMEOUT = 30_000

/** Milliseconds between two attempts. */
const LOCK_INTERVAL = 5

/** The ends of the names of a database, and of the files that SQLite creates beside it. */
const SUFFIXES = ['', '-journal', '-wal', '-shm']

/**
 * Copies a snapshot of the database at `path` to a `file`, which exists only once it is complete. Writes
 * to the database do not wait. Throws for a damaged database, whose copy could not be restored, for a
 * file that exists, and for errors of the file system and of SQLite.
 */
export async function backUp(path: string, file: string): Promise<void> {
  // Unique: a power failure leaves the part of its backup, and two backups may have the same file.
  const part = `${file}.${randomUUID()}.part`
  const discard = () => {
    for (const suffix of SUFFIXES) rmSync(part + suffix, { force: true })
  }
  using source = new DatabaseSync(path)
  process.once('exit', discard) // a signal ends a command at once
  try {
    // Only the owner may read the names and hashes of keys.
    closeSync(openSync(part, 'wx', 0o600))
    await copy(source, part)
    finish(part)
    publish(part, file)
  } finally {
    process.off('exit', discard)
    discard()
  }
}

/**
 * Replaces the content of the database at `path` by a backup, in one transaction. Creates the database,
 * with its folder, if it is missing. Throws for a file that is not a complete database of this service,
 * and for errors of the file system and of SQLite. Nothing has changed then.
 */
export async function restore(path: string, file: string): Promise<void> {
  using source = new DatabaseSync(file, { readOnly: true })
  if (!isIntact(source)) throw new Error('the file is damaged')
  source.prepare('select name from kysely_migration').get()
  source.prepare('select id, name, prefix, hash, created_at from api_keys limit 1').get()
  mkdirSync(dirname(path), { recursive: true })
  closeSync(openSync(path, 'a', 0o600))
  await copy(source, path)
}

/** Makes a copy readable from a read-only folder, without a separate log. Throws if it is damaged. */
function finish(part: string): void {
  using copied = new DatabaseSync(part)
  copied.exec('pragma journal_mode = delete')
  if (!isIntact(copied)) throw new Error('the database is damaged')
}

/** Gives a finished copy its name. Throws if there is a file of this name. */
function publish(part: string, file: string): void {
  try {
    linkSync(part, file) // unlike a rename, it never replaces a file
  } catch {
    if (existsSync(file)) throw new Error('the file exists')
    // The file system may have no links, as on a memory card. A rename reports every other error.
    renameSync(part, file)
  }
}

/** Returns whether SQLite finds no damage: https://sqlite.org/pragma.html#pragma_integrity_check */
const isIntact = (database: DatabaseSync): boolean =>
  database.prepare('pragma integrity_check').get()?.integrity_check === 'ok'

async function copy(source: DatabaseSync, path: string): Promise<void> {
  const end = performance.now() + LOCK_TIMEOUT
  for (;;) {
    try {
      await backup(source, path, { rate: ALL_PAGES })
      return
    } catch (cause) {
      // node:sqlite does not wait for a lock: `backup` fails with the result code 0.
      if ((cause as { errcode?: number }).errcode !== 0) throw cause
      if (performance.now() > end) throw new Error('other processes hold the database', { cause })
      await setTimeout(LOCK_INTERVAL)
    }
  }
}
