/**
 * The write-ahead log of a SQLite database (petstore.db-wal), which is a part of the database, and its index
 * (petstore.db-shm): https://sqlite.org/walformat.html
 */
import { readSync } from 'node:fs'

/** The bytes of the header of a database: https://sqlite.org/fileformat2.html#the_database_header */
export const FILE_HEADER = 100
const MAGIC = Buffer.from('SQLite format 3\0')

/** Returns whether these bytes begin a database that has a write-ahead log. */
export const hasLog = (head: Buffer): boolean =>
  head.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) === 0 && head[18] === 2 // otherwise 1

/** The bytes of the header of a log. */
export const LOG_HEADER = 32
const FRAME_HEADER = 24

/** Two copies of the header of an index, then what says how many frames were copied into the file. */
const INDEX_WORDS = 34
const COPY_WORDS = 12

/** What an index is a file of: https://sqlite.org/walformat.html#walidxfmt */
const VERSION = 3_007_000

/** Returns the size of the pages of the database of a log; undefined if these bytes do not begin a log. */
export const pageSizeOf = (header: Buffer): number | undefined =>
  header.length === LOG_HEADER && header.readUInt32BE(0) >>> 1 === 0x37_7f_06_82 >>> 1
    ? header.readUInt32BE(8)
    : undefined

// One buffer for all: to make one takes as long as to fill it. Its words are in the byte order of the machine.
const words = new Uint32Array(INDEX_WORDS)
const halves = new Uint16Array(words.buffer)

/**
 * Returns whether a log has all frames that its index names, or at least those that the file does not have
 * (`isCopyEnough`). True if the index names none. `index` is a descriptor: SQLite loses its locks when one is
 * closed (https://sqlite.org/howtocorrupt.html, 2.2). `sizeOf` returns the size of the log in bytes.
 */
export function isWhole(index: number, isCopyEnough: boolean, sizeOf: () => number): boolean {
  for (;;) {
    read(index)
    const size = sizeOf()
    if (size >= sizeBy(isCopyEnough)) return true
    const before = words.slice()
    read(index)
    // Otherwise another process has written a frame in between, or has emptied the log after its last copy.
    if (before.every((word, at) => word === words[at])) return false
  }
}

function read(index: number): void {
  const length = readSync(index, words, 0, words.byteLength, 0)
  if (length < words.byteLength) words.fill(0) // SQLite is making it
}

/** Returns the bytes that a log has by the words of its index; 0 if they say nothing, so that SQLite makes it anew. */
function sizeBy(isCopyEnough: boolean): number {
  for (let at = 0; at < COPY_WORDS; at++) if (words[at] !== words[COPY_WORDS + at]) return 0
  const { 0: version, 4: frames = 0, 24: copied } = words
  if (version !== VERSION || frames === 0 || (isCopyEnough && copied === frames)) return 0
  const pageSize = halves[7] === 1 ? 65_536 : (halves[7] ?? 0)
  return LOG_HEADER + frames * (FRAME_HEADER + pageSize)
}
