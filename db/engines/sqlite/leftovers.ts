/**
 * What lies at the place of a SQLite database before it is opened. SQLite removes what it takes for left-overs,
 * or writes it into the file, without a word: https://sqlite.org/howtocorrupt.html
 */
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { uptime } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { BrokenDatabaseError } from '../../errors.ts'
import { isMountPoint } from './mounts.ts'
import { FILE_HEADER, hasLog, isWhole, LOG_HEADER, pageSizeOf } from './wal.ts'

const LOST = 'see "When the data are lost" in docs/runbook.md'

/**
 * Throws BrokenDatabaseError, which says what to do, if SQLite would lose data by what lies at `path`. Changes
 * nothing. Call it only while this process has the database not open: to close one of its files drops SQLite's
 * locks (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function refuseLeftovers(path: string): void {
  const file = targetOf(path) // beside it SQLite keeps the log of a link
  const problem = problemOf(file)
  if (problem) throw new BrokenDatabaseError(new Error(problem), true)
}

/** Returns what is wrong, and what to do. */
function problemOf(file: string): string | undefined {
  const [log, index, journal] = [`${file}-wal`, `${file}-shm`, `${file}-journal`]
  const nameOfLog = basename(log)
  for (const path of [file, log, index]) {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (!stats) continue
    if (!stats.isFile())
      return `${basename(path)} is not a file: move it away, or name another path`
    if (stats.nlink > 1) {
      return `${basename(path)} has ${stats.nlink} names (hard links), and SQLite would keep a log for each: remove the others, or copy the folder and use the copy`
    }
    if (isMountPoint(path)) {
      return `${basename(path)} is mounted without its folder, where SQLite keeps the log of the database: mount the folder`
    }
  }
  // The log first: a process that makes a database writes the file, by a journal, before the log.
  const logHead = headOf(log, LOG_HEADER)
  const head = headOf(file, FILE_HEADER)
  if (head?.length !== FILE_HEADER) {
    if (!logHead) return undefined // a new database
    return `the file is ${head ? 'empty' : 'missing'}, but ${nameOfLog}, a part of the database, lies beside it: put the file back, or move the rest away and restore a backup, ${LOST}`
  }
  const pageSize = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16)
  const isLogUsed = logHead !== undefined && logHead.length > 0
  if (isLogUsed && !(hasLog(head) && fits(logHead, pageSize))) {
    return `${nameOfLog} is not the write-ahead log of ${basename(file)}: put the file back to which it belongs, or move it away`
  }
  if (!hasLog(head)) return undefined
  const isComplete = isLogUsed || statSync(file).size > pageSize
  if (isComplete && headOf(journal, 1)?.[0]) {
    return `${basename(journal)}, which is no part of this database, lies beside it: move it away`
  }
  if (!hasAllFrames(log, index)) {
    return `${nameOfLog}, a part of the database, ${logHead ? 'was shortened' : 'is missing'}: put it back, ${LOST}`
  }
  return undefined
}

/** Returns whether these bytes may begin the log of a database. A power failure may leave zeros. */
const fits = (logHead: Buffer, pageSize: number): boolean =>
  pageSizeOf(logHead) === pageSize || logHead.every((byte) => byte === 0)

/** Returns whether the log has what its index names, and the file does not have. */
function hasAllFrames(log: string, index: string): boolean {
  // After a failure of the machine the disk may have a newer log, for example one that was emptied in order.
  const machineStartedAt = Date.now() - uptime() * 1_000
  const writtenAt = statSync(index, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (writtenAt < machineStartedAt) return true
  const sizeOf = () => {
    const head = headOf(log, LOG_HEADER)
    return head && pageSizeOf(head) ? (statSync(log, { throwIfNoEntry: false })?.size ?? 0) : 0
  }
  return withFile(index, (descriptor) => isWhole(descriptor, true, sizeOf)) ?? true
}

/** Returns the first bytes of a file, at most `length`; undefined if it is missing. */
const headOf = (path: string, length: number): Buffer | undefined =>
  withFile(path, (descriptor) => {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(descriptor, bytes, 0, length, 0))
  })

/** Calls `use` with an open file. Returns undefined if it is missing: another process may remove it at any time. */
function withFile<Result>(path: string, use: (descriptor: number) => Result): Result | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return use(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Returns the path that links lead to, also if it does not exist. */
function targetOf(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })) return realpathSync(path)
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  if (isLink) return targetOf(resolve(dirname(path), readlinkSync(path)))
  const folder = dirname(path)
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path
}
