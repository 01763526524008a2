/** The errors of SQLite, by their result codes: https://sqlite.org/rescode.html */
import { DatabaseUnavailableError, DuplicateError, LockedError } from '../../errors.ts'

/** Another process holds the lock; also the extended codes _RECOVERY and _SNAPSHOT. */
const BUSY = 5
const CONSTRAINT = 19

/** LOCKED, READONLY, IOERR, FULL, CANTOPEN, NOTADB */
const unavailable = new Set([6, 8, 10, 13, 14, 26])

/** SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY */
const duplicate = new Set([2067, 1555])

interface DriverError extends Error {
  code?: string
  errcode?: number
  /** The system call that failed, in an error of the file system. */
  syscall?: string
}

/** The primary result code is the lowest byte of an extended one. */
const primaryCode = (code: number) => code & 0xff

/** Returns an error of node:sqlite as an error of db/errors.ts; an error in the statement stays as it is. */
export function sqliteError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code, errcode = 0, syscall }: DriverError = error
  // The file system does not allow to open the file.
  if (syscall !== undefined) return new DatabaseUnavailableError(error, false)
  if (code !== 'ERR_SQLITE_ERROR') return error
  if (primaryCode(errcode) === BUSY) return new LockedError(error, true)
  if (unavailable.has(primaryCode(errcode))) return new DatabaseUnavailableError(error, true)
  return duplicate.has(errcode) ? new DuplicateError(error.message) : error
}

/** Returns whether SQLite rejected a row, so that its statement added no row. */
export function isSqliteRowRejected(error: Error): boolean {
  const { errcode = 0 }: DriverError = error
  return error instanceof DuplicateError || primaryCode(errcode) === CONSTRAINT
}

/** Returns whether a new column or index exists already. SQLite has no result code for this. */
export const existsOnSqlite = ({ message }: Error): boolean =>
  /^duplicate column name: |^index .+ already exists$/.test(message)
