/** The files of a SQLite database: how they are opened, and whether they are still in their places. */
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { DatabaseUnavailableError } from '../../errors.ts'

/** Opens a file, which is created with its folder if it is missing and `mayCreate`. */
export function openFile(path: string, mayCreate: boolean): DatabaseSync {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!existsSync(path)) {
    // A typing error in the path must not create an empty database.
    const cause = new Error('the file does not exist; ?create at the end of the URL creates it')
    throw new DatabaseUnavailableError(cause, false)
  }
  if (!existsSync(path) && existsSync(`${path}-wal`)) {
    const cause = new Error('the file is missing: put it back, or move its log (-wal) away')
    throw new DatabaseUnavailableError(cause, false)
  }
  // Only the owner may read the file. SQLite creates its other files with the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 0 })
  try {
    // FULL: a commit survives a power failure (https://sqlite.org/pragma.html#pragma_synchronous). The
    // first statement creates the log.
    database.exec('pragma journal_mode=wal; pragma synchronous=full; select 1 from sqlite_schema')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** The files, by their paths, each with what identified it when it was opened. */
export type Files = Map<string, string | undefined>

/** Returns the files of a database that was just opened: its own, its log, and the index of the log. */
export function filesOf(path: string): Files {
  const target = realpathSync(path) // beside it SQLite keeps the log of a link
  const paths = [path, `${target}-wal`, `${target}-shm`]
  return new Map(paths.map((path) => [path, identityOf(path)]))
}

/** Returns a path that no longer leads to the file that was opened; undefined if all do. */
export const lostPath = (files: Files): string | undefined =>
  [...files].find(([path, identity]) => identityOf(path) !== identity)?.[0]

/** Returns whether the log was removed, the database is in its place, and no process uses a new log. */
export function isLogLost(files: Files): boolean {
  const [main, log] = [...files.keys()]
  if (!main || !log || identityOf(main) !== files.get(main)) return false
  // A process that only reads makes an empty log.
  const isUsed = (statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0
  return identityOf(log) !== files.get(log) && !isUsed
}

/** Returns what identifies the file at a path; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev} ${stats.ino}`
}
