/** The errors of SQLite, by their result codes: https://sqlite.org/rescode.html */
import { realpathSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  DamagedDatabaseError,
  DatabaseUnavailableError,
  DuplicateError,
  LockedError,
  RejectedRowError,
  RejectedStatementError,
} from '../../errors.ts'

/** Another process holds the lock; also the extended codes _RECOVERY and _SNAPSHOT. */
const BUSY = 5
const CONSTRAINT = 19

/** PERM, LOCKED, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL */
const unavailable = new Set([3, 6, 8, 10, 13, 14, 15])

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

/** IOERR, FULL, CANTOPEN: what SQLite reports on a full disk, by the step that fails. */
const full = new Set([10, 13, 14])

/**
 * What it reports where the file system has no shared memory, or no locks: PERM, PROTOCOL, IOERR_RDLOCK,
 * _CHECKRESERVEDLOCK, _LOCK, _SHMOPEN, _SHMLOCK, _SHMMAP.
 */
const unsupported = new Set([3, 15, 2314, 3594, 3850, 4618, 5130, 5386])

/** A disk with fewer free bytes has no space for an empty log and its index. */
const MIN_SPACE = 65_536

/** Returns an error of node:sqlite, which opens or fills `file`, with its reason if that is the file system. */
export function withReason(error: unknown, file: string): unknown {
  const { code, errcode = 0, message } = error as DriverError
  const folder = dirname(realpathSync(file))
  const unavailable = (reason: string) =>
    new DatabaseUnavailableError(new Error(reason, { cause: error }), true)
  if (code !== 'ERR_SQLITE_ERROR') return error
  if (full.has(errcode & 0xff) && isFull(folder)) {
    return unavailable(`the disk of ${folder} is full (${message}): free some space, and try again`)
  }
  if (!unsupported.has(errcode)) return error
  return unavailable(
    `the file system of ${folder} lacks the shared memory or the locks that SQLite needs (${message}): move the database to a local disk, or use MySQL`,
  )
}

function isFull(folder: string): boolean {
  const { bavail, bsize, files, ffree } = statfsSync(folder)
  return bavail * bsize < MIN_SPACE || (files > 0 && ffree === 0) // some file systems count no files
}

/** Returns an error of node:sqlite as an error of db/errors.ts; one of Node itself stays as it is. */
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
  const Rejected = primary === CONSTRAINT ? RejectedRowError : RejectedStatementError
  return new Rejected(message, { cause: error })
}
