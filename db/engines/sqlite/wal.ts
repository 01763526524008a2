/**
 * The write-ahead log of a SQLite database (petstore.db-wal), which is a part of the database, and its index
 * (petstore.db-shm): https://sqlite.org/walformat.html
 */
import { readSync } from 'node:fs'

/** The first bytes of a log. */
export const LOG_HEADER = 32
const FRAME_HEADER = 24

/** Two copies of the header of an index, and what says how much of the log was copied into the file. */
const INDEX_WORDS = 34
const COPY_WORDS = 12

/** What an index is a file of: https://sqlite.org/walformat.html#walidxfmt */
const VERSION = 3_007_000

/** Returns the size of the pages of the database of a log; undefined if these bytes do not begin a log. */
export const pageSizeOf = (header: Buffer): number | undefined =>
  header.length === LOG_HEADER && header.readUInt32BE(0) >>> 1 === 0x37_7f_06_82 >>> 1
    ? header.readUInt32BE(8)
    : undefined

/**
 * Returns whether a log has all frames that its index names, or at least those that the file does not have
 * (`isCopyEnough`). True if the index names none. `index` is a descriptor: SQLite loses its locks when one is closed
 * (https://sqlite.org/howtocorrupt.html, 2.2). `sizeOf` returns the size of the log in bytes.
 */
export function isWhole(index: number, isCopyEnough: boolean, sizeOf: () => number): boolean {
  for (let words = read(index); ; ) {
    if (sizeOf() >= sizeBy(words, isCopyEnough)) return true
    // Another process may have written a frame in between, or have emptied the log after its last copy.
    const latest = read(index)
    if (latest.every((word, at) => word === words[at])) return false
    words = latest
  }
}

/** The words of an index are in the byte order of the machine. */
function read(index: number): Uint32Array {
  const words = new Uint32Array(INDEX_WORDS)
  readSync(index, words, 0, words.byteLength, 0)
  return words
}

/** Returns the bytes that a log has by its index; 0 if that says nothing, because SQLite makes it anew. */
function sizeBy(words: Uint32Array, isCopyEnough: boolean): number {
  const isSame = words.subarray(0, COPY_WORDS).every((word, at) => word === words[COPY_WORDS + at])
  const [version, , , sizes = 0, frames = 0] = words
  const copied = words[2 * COPY_WORDS]
  if (version !== VERSION || !isSame || frames === 0 || (isCopyEnough && copied === frames))
    return 0
  const pageSize = new Uint16Array(Uint32Array.of(sizes).buffer)[1] ?? 0
  return LOG_HEADER + frames * (FRAME_HEADER + (pageSize === 1 ? 65_536 : pageSize))
}
