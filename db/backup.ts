/** Backups of an embedded database, while other processes use it. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { connect } from './connect.ts'
import { sqliteError, withReason } from './engines/sqlite/errors.ts'
import { refuseLeftovers } from './engines/sqlite/place.ts'
import { DamagedDatabaseError } from './errors.ts'
import { migrate, TABLE } from './migrate.ts'
import { tablesAfter } from './migrations.ts'
import { CREATE } from './url.ts'

/** Copies all pages in one step. A copy in several steps starts again at each write of another process. */
const ALL_PAGES = 2 ** 31 - 1

/** What SQLite takes for parts of a database, or for left-overs, by its name. */
const SUFFIXES = ['-journal', '-wal', '-shm']

/** Milliseconds that other processes may hold the database, and between two attempts. */
const LOCK_TIMEOUT = 30_000
const LOCK_INTERVAL = 5

/** BUSY, LOCKED, and 0: so `backup` reports both today, without a wait. */
const LOCKED = [0, 5, 6]

/**
 * Copies a snapshot of the database at `source` to a `file`, which exists only once it is complete. Writes
 * to the database do not wait. Throws for a database that is damaged, or not of this service, whose copy could
 * not be restored, for what `refuseLeftovers` refuses, for a file that exists, or one of SQLite's beside it, and
 * for errors of the file system and of SQLite.
 */
export async function backUp(source: string, file: string): Promise<void> {
  const taken = ['', ...SUFFIXES].map((suffix) => file + suffix).find((name) => existsSync(name))
  if (taken) throw new Error(`${taken} exists: choose another FILE`)
  refuseLeftovers(source)
  if (!existsSync(source)) throw new Error(`${source} does not exist`)
  const copySource = async (part: string) => {
    using database = new DatabaseSync(source)
    await copy(database, part).catch((error) => {
      throw withReason(error, source)
    })
  }
  await withCopy(file, copySource, (_copied, part) => {
    writeFileSync(file, '', { flag: 'wx' }) // throws if another backup was faster: a rename would replace its file
    renameSync(part, file)
    keepName(file)
  })
}

/**
 * Replaces the content of the database at `target` by a backup, in one transaction. Creates the database,
 * with its folder, if it is missing. Migrates both before. No id that the database assigned is assigned again,
 * except by chance those of creations at that very moment. Throws for a file that is not a complete database of
 * this service, or has files of SQLite beside it, for a target that is damaged, of another program, or refused
 * by `refuseLeftovers`, and for errors of the file system and of SQLite, without a change.
 */
export async function restore(target: string, file: string): Promise<void> {
  const isFile = statSync(file, { throwIfNoEntry: false })?.isFile()
  if (!isFile) throw new Error(`${file} does not exist, or is not a file`)
  const real = realpathSync(file) // beside it is what SQLite would take for a part of it
  const beside = SUFFIXES.map((suffix) => real + suffix).find((name) => existsSync(name))
  if (beside) {
    const name = path.basename(beside)
    throw new Error(
      `${name} lies beside it: move it away, or, if it belongs to the file, make one file of both by npm run backup with DATABASE_URL=sqlite:${file}`,
    )
  }
  mkdirSync(path.dirname(target), { recursive: true })
  // SQLite would write into the file itself, if only to undo what it takes for left-overs.
  const copyFile = (part: string) => {
    copyFileSync(file, part)
    chmodSync(part, 0o600) // `copyFileSync` has given it the rights of the file
  }
  const isNew = lstatSync(target, { throwIfNoEntry: false }) === undefined
  if (isNew) refuseLeftovers(target)
  await withCopy(target, copyFile, async (copied, part) => {
    await migrateFile(part)
    if (isNew) {
      copied.exec('pragma journal_mode = delete') // the migration has made a log
      // Never an empty file, with which a service would start: this fails if there is a file by now.
      linkSync(part, target)
      rmSync(part)
      return keepName(target)
    }
    try {
      await migrateFile(target)
      await replace(target, copied)
    } catch (error) {
      if (!(sqliteError(error) instanceof DamagedDatabaseError)) throw error
      const name = path.basename(target)
      throw new Error(
        `${name} is damaged, too: stop the service, move ${name} and what lies beside it away, and restore again`,
      )
    }
  })
}

/** Has a new name of a file survive a power failure. */
function keepName(file: string): void {
  const folder = openSync(path.dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

async function migrateFile(file: string): Promise<void> {
  await using db = await connect(`sqlite:${file}${CREATE}`)
  await migrate(db)
}

/** Replaces the content of the database at `target` by that of a copy, which then has the ids of both. */
async function replace(target: string, copied: DatabaseSync): Promise<void> {
  copied.prepare('attach ? as replaced').run(target)
  copied.exec(`create temp table ids as select name, max(seq) as seq from
    (select * from main.sqlite_sequence union all select * from replaced.sqlite_sequence) group by name;
    delete from main.sqlite_sequence; insert into main.sqlite_sequence select name, seq from ids`)
  await copy(copied, target)
}

/**
 * Has `fill` make a file in a folder beside `target`, checks it, and calls `use` with it. Throws if it is
 * damaged, or has no tables of this service.
 */
async function withCopy(
  target: string,
  fill: (part: string) => Promise<void> | void,
  use: (copied: DatabaseSync, part: string) => Promise<void> | void,
): Promise<void> {
  // Another folder for each: a power failure leaves one, and two backups may have the same file.
  const folder = mkdtempSync(`${target}.part-`)
  const discard = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', discard) // a signal ends a command at once
  try {
    const part = path.join(folder, 'copy.db')
    writeFileSync(part, '', { mode: 0o600 }) // only the owner may read the names and hashes of keys
    await fill(part)
    using copied = new DatabaseSync(part)
    copied.exec('pragma journal_mode = delete') // one file, without a log
    // https://sqlite.org/pragma.html#pragma_integrity_check
    const { integrity_check } = copied.prepare('pragma integrity_check').get() ?? {}
    if (integrity_check !== 'ok') throw new Error('the database is damaged')
    refuseStranger(copied)
    await use(copied, part)
  } finally {
    process.off('exit', discard)
    discard()
  }
}

/**
 * Throws for a database that another program made, or that is empty: migrations would complete that. One of an early
 * release has the tables of the migrations that have run in it.
 */
function refuseStranger(database: DatabaseSync): void {
  const namesOf = (query: string) =>
    database
      .prepare(query)
      .all()
      .map(({ name }) => `${name}`)
  try {
    const tables = namesOf("select name from sqlite_schema where type in ('table', 'view')")
    const executed = tables.includes(TABLE) ? namesOf(`select name from ${TABLE}`) : []
    const missing = tablesAfter(executed).find((table) => !tables.includes(table))
    if (missing) throw new Error(`no such table: ${missing}`)
  } catch (error) {
    throw new Error(`it is no database of this service: ${(error as Error).message}`)
  }
}

async function copy(source: DatabaseSync, target: string): Promise<void> {
  for (const end = performance.now() + LOCK_TIMEOUT; ; await setTimeout(LOCK_INTERVAL)) {
    try {
      await backup(source, target, { rate: ALL_PAGES })
      return
    } catch (cause) {
      if (!LOCKED.includes((cause as { errcode?: number }).errcode ?? -1)) {
        throw withReason(cause, target)
      }
      // Without its cause, whose message is "not an error".
      if (performance.now() > end) throw new Error('other processes hold the database')
    }
  }
}
