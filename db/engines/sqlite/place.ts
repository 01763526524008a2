/**
 * The place of a SQLite database: its file, the write-ahead log, which is a part of it (petstore.db-wal), the index of
 * the log (petstore.db-shm), and a journal. SQLite removes what it takes for left-overs, or writes it into the file,
 * and goes on using files that were moved or cut, without a word: https://sqlite.org/howtocorrupt.html
 */
import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { uptime } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { BrokenDatabaseError } from '../../errors.ts'

const RUNBOOK = 'see "When the data are lost" in docs/runbook.md'
const broken = (message: string) => new BrokenDatabaseError(new Error(message), true)

/**
 * Throws BrokenDatabaseError, which says what to do, if SQLite would lose data by what lies at `path`. Changes
 * nothing. Call it only while this process has the database not open: to close one of its files drops SQLite's
 * locks (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function refuseLeftovers(path: string): void {
  const problem = problemOf(targetOf(path)) // beside it SQLite keeps the log of a link
  if (problem) throw broken(problem)
}

/** A file that stays open as long as the database: to close one of the file or the index drops SQLite's locks. */
interface OpenFile {
  readonly path: string
  readonly descriptor: number
  /** What identifies it. */
  readonly stats: BigIntStats
}

/** The place of a database that is open. */
export class Place {
  readonly #main: OpenFile
  readonly #log: OpenFile
  readonly #index: OpenFile
  /** Why the database is not used until the files are back: the error of the last `check`. */
  lost: BrokenDatabaseError | undefined

  /** Takes note of the files of a database that was just opened at `path`. Throws errors of the file system. */
  constructor(path: string) {
    const target = realpathSync(path)
    this.#main = opened(path)
    this.#log = opened(`${target}-wal`)
    this.#index = opened(`${target}-shm`)
  }

  /** Closes the files of a database that is closed. */
  close(): void {
    for (const { descriptor } of [this.#main, this.#log, this.#index]) closeSync(descriptor)
  }

  /**
   * Throws BrokenDatabaseError: `lost` while a path does not lead to the file that was opened, which SQLite goes on
   * using; another one, after which the database is not to be used any more, once the file was overwritten, or its
   * log has lost frames: SQLite would write further ones behind the gap.
   */
  check(): void {
    this.#find(this.#main)
    const { size } = this.#find(this.#log)
    this.#find(this.#index)
    this.lost = undefined
    const loss = this.#loss(Number(size))
    if (loss) throw broken(`${loss}: stop the service, and ${RUNBOOK}`)
  }

  /** Copies what was acknowledged into the database, if its log alone was removed: SQLite still has it. */
  saveLog(database: DatabaseSync): void {
    const found = statsOf(this.#log.path)
    const isLogLost = !isSame(this.#log, found)
    if (!isLogLost || !isSame(this.#main, statsOf(this.#main.path)) || this.#loss(0)) return
    // Another process that has made a new log, even an empty one, may write pages that it read before the copy.
    if (!found) database.exec('pragma wal_checkpoint')
  }

  /** Returns what is at the path of a file. Throws `lost` if that is another one. */
  #find(file: OpenFile): BigIntStats {
    const found = statsOf(file.path)
    if (isSame(file, found)) return found
    this.lost ??= broken(
      `${file.path} is no longer the file that the service opened, and new data is lost with the old file: put that back, or end other programs that use the database, and restart the service`,
    )
    throw this.lost
  }

  /**
   * Returns what happened to the opened file or log; undefined if they are whole. `size` is one that the log had,
   * in bytes.
   */
  #loss(size: number): string | undefined {
    // A backup that was copied over the file, for example, has no log.
    if (!hasLog(headOf(this.#main.descriptor, FILE_HEADER))) {
      return `${basename(this.#main.path)} was overwritten`
    }
    const index = this.#index.descriptor
    if (isWhole(index, false, () => size)) return undefined
    // Another process may have written frames since.
    if (isWhole(index, false, () => fstatSync(this.#log.descriptor).size)) return undefined
    return `${basename(this.#log.path)}, a part of the database, was shortened`
  }
}

function opened(path: string): OpenFile {
  const descriptor = openSync(path, 'r')
  return { path, descriptor, stats: fstatSync(descriptor, { bigint: true }) }
}

const statsOf = (path: string): BigIntStats | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })

const isSame = ({ stats }: OpenFile, found: BigIntStats | undefined): found is BigIntStats =>
  found !== undefined && found.ino === stats.ino && found.dev === stats.dev

/** Returns what is wrong with what lies at the place of a database that is to be opened, and what to do. */
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
  const read = (path: string, length: number) => withFile(path, (opened) => headOf(opened, length))
  // The log first: a process that makes a database writes the file, by a journal, before the log.
  const logHead = read(log, LOG_HEADER)
  const head = read(file, FILE_HEADER)
  if (head?.length !== FILE_HEADER) {
    if (!logHead) return undefined // a new database
    return `the file is ${head ? 'empty' : 'missing'}, but ${nameOfLog}, a part of the database, lies beside it: put the file back, or move the rest away and restore a backup, ${RUNBOOK}`
  }
  const isLogUsed = logHead !== undefined && logHead.length > 0
  // A power failure may leave zeros.
  const isLog = logHead && (beginsLog(logHead) || logHead.every((byte) => byte === 0))
  if (isLogUsed && !(hasLog(head) && isLog)) {
    return `${nameOfLog} is not the write-ahead log of ${basename(file)}: put the file back to which it belongs, or move it away`
  }
  if (!hasLog(head)) return undefined
  const isComplete = isLogUsed || statSync(file).size > bytesOf(head.readUInt16BE(16))
  if (isComplete && read(journal, 1)?.[0]) {
    return `${basename(journal)}, which is no part of this database, lies beside it: move it away`
  }
  if (!hasAllFrames(log, index)) {
    return `${nameOfLog}, a part of the database, ${logHead ? 'was shortened' : 'is missing'}: put it back, ${RUNBOOK}`
  }
  return undefined
}

/** Returns whether a log that nobody uses has what its index names, and the file does not have. */
function hasAllFrames(log: string, index: string): boolean {
  // After a failure of the machine the disk may have a newer log, for example one that was emptied in order.
  const machineStartedAt = Date.now() - uptime() * 1_000
  const writtenAt = statSync(index, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (writtenAt < machineStartedAt) return true
  const size = (opened: number) =>
    beginsLog(headOf(opened, LOG_HEADER)) ? fstatSync(opened).size : 0
  const sizeOf = () => withFile(log, size) ?? 0
  return withFile(index, (opened) => isWhole(opened, true, sizeOf)) ?? true
}

/** Returns whether a file, at a path without links, is a mount: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html */
function isMountPoint(path: string): boolean {
  const mounts = withFile('/proc/self/mountinfo', (opened) => readFileSync(opened, 'utf8')) ?? ''
  const escaped = path.replace(/[ \t\n\\]/g, (letter) => {
    return `\\${letter.charCodeAt(0).toString(8).padStart(3, '0')}`
  })
  return mounts.split('\n').some((line) => line.split(' ')[4] === escaped)
}

/** Returns the path that links lead to, also if it does not exist. */
function targetOf(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })) return realpathSync(path)
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  if (isLink) return targetOf(resolve(dirname(path), readlinkSync(path)))
  const folder = dirname(path)
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path
}

/** Calls `use` with an open file. Returns undefined if it is missing: another process may remove it at any time. */
function withFile<Result>(path: string, use: (opened: number) => Result): Result | undefined {
  let opened: number
  try {
    opened = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return use(opened)
  } finally {
    closeSync(opened)
  }
}

/** Returns the first bytes of an open file, at most `length`. */
function headOf(opened: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(opened, bytes, 0, length, 0))
}

/** The bytes of the header of a database: https://sqlite.org/fileformat2.html#the_database_header */
const FILE_HEADER = 100
const MAGIC = Buffer.from('SQLite format 3\0')

/** Returns whether these bytes begin a database that has a write-ahead log. */
const hasLog = (head: Buffer): boolean =>
  head.length === FILE_HEADER && head.subarray(0, MAGIC.length).equals(MAGIC) && head[18] === 2

/** The bytes of a log before its frames, and of a frame before its page: https://sqlite.org/walformat.html */
const LOG_HEADER = 32
const FRAME_HEADER = 24

/** Returns whether these bytes begin a log. */
const beginsLog = (head: Buffer): boolean =>
  head.length === LOG_HEADER && head.readUInt32BE(0) >>> 1 === 0x37_7f_06_82 >>> 1

/** Returns the bytes of a page, by the number that stands for them in a header. */
const bytesOf = (pageSize: number): number => (pageSize === 1 ? 65_536 : pageSize)

/** What an index begins with, twice; then comes how many frames were copied into the file: https://sqlite.org/walformat.html#walidxfmt */
const COPY_WORDS = 12
const INDEX_WORDS = 34
const VERSION = 3_007_000

// One buffer for all: to make one takes as long as to fill it. Its words are in the byte order of the machine.
const words = new Uint32Array(INDEX_WORDS)
const halves = new Uint16Array(words.buffer)

/**
 * Returns whether a log has all frames that its index names, or at least those that the file does not have
 * (`isCopyEnough`). True if the index names none. `sizeOf` returns the size of the log in bytes.
 */
export function isWhole(index: number, isCopyEnough: boolean, sizeOf: () => number): boolean {
  for (;;) {
    readWords(index)
    const size = sizeOf()
    if (size >= sizeBy(isCopyEnough)) return true
    const before = words.slice()
    readWords(index)
    // Otherwise another process has written a frame in between, or has emptied the log after its last copy.
    if (before.every((word, at) => word === words[at])) return false
  }
}

function readWords(index: number): void {
  const length = readSync(index, words, 0, words.byteLength, 0)
  if (length < words.byteLength) words.fill(0) // SQLite is making it
}

/** Returns the bytes that a log has by the words of its index; 0 if they say nothing, so that SQLite makes it anew. */
function sizeBy(isCopyEnough: boolean): number {
  for (let at = 0; at < COPY_WORDS; at++) if (words[at] !== words[COPY_WORDS + at]) return 0
  const { 0: version, 4: frames = 0, 24: copied } = words
  if (version !== VERSION || frames === 0 || (isCopyEnough && copied === frames)) return 0
  return LOG_HEADER + frames * (FRAME_HEADER + bytesOf(halves[7] ?? 0))
}
