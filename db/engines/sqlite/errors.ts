/** The errors of SQLite, by their result codes: https://sqlite.org/rescode.html */
import {
  DamagedDatabaseError,
  DatabaseUnavailableError,
  DuplicateError,
  LockedError,
  RejectedRowError,
} from '../../errors.ts'

/** Another process holds the lock; also the extended codes _RECOVERY and _SNAPSHOT. */
const BUSY = 5
const CONSTRAINT = 19

/** LOCKED, READONLY, IOERR, FULL, CANTOPEN */
const unavailable = new Set([6, 8, 10, 13, 14])

/** CORRUPT, NOTADB */
const damaged = new Set([11, 26])

/** SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY */
const duplicate = new Set([2067, 1555])

interface DriverError extends Error {
  code?: string
  errcode?: number
  /** The system call that failed, in an error of the file system. */
  syscall?: string
}

/** Returns an error of node:sqlite as an error of db/errors.ts; an error in the statement stays as it is. */
export function sqliteError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code, errcode = 0, syscall, message }: DriverError = error
  // The file system does not allow to open the file.
  if (syscall !== undefined) return new DatabaseUnavailableError(error, false)
  if (code !== 'ERR_SQLITE_ERROR') return error
  const primary = errcode & 0xff // the lowest byte of an extended code
  if (primary === BUSY) return new LockedError(error, true)
  if (unavailable.has(primary)) return new DatabaseUnavailableError(error, true)
  if (damaged.has(primary)) {
    const hint = `the file is damaged (${message}): restart the service, and if that does not help, restore a backup, see "When the data are lost" in docs/runbook.md`
    return new DamagedDatabaseError(new Error(hint, { cause: error }), true)
  }
  if (duplicate.has(errcode)) return new DuplicateError(message)
  return primary === CONSTRAINT ? new RejectedRowError(message, { cause: error }) : error
}
