/** Whether the files of an open SQLite database are still those that were opened, and whole. */
import {
  type BigIntStats,
  closeSync,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { BrokenDatabaseError } from '../../errors.ts'
import { FILE_HEADER, hasLog, isWhole } from './wal.ts'

/** The place of a database: its file, its write-ahead log, and the index of the log. */
export class Place {
  readonly #main: string
  readonly #log: string
  /** The files, by their paths, each with what identified it when it was opened. */
  readonly #files: Map<string, string | undefined>
  /** They stay open as long as the database: to close one of the file or the index drops SQLite's locks. */
  readonly #descriptors: { main: number; log: number; index: number }
  readonly #head = Buffer.alloc(FILE_HEADER)
  #lost: BrokenDatabaseError | undefined
  #cut: BrokenDatabaseError | undefined

  /** Takes note of the files of a database that was just opened at `path`. Throws errors of the file system. */
  constructor(path: string) {
    const target = realpathSync(path) // beside it SQLite keeps the log of a link
    const index = `${target}-shm`
    this.#main = path
    this.#log = `${target}-wal`
    const names = [this.#main, this.#log, index]
    this.#files = new Map(names.map((name) => [name, identityOf(statsOf(name))]))
    const [main, log] = [openSync(target, 'r'), openSync(this.#log, 'r')]
    this.#descriptors = { main, log, index: openSync(index, 'r') }
  }

  /** Closes the descriptors of a database that is closed. */
  close(): void {
    for (const descriptor of Object.values(this.#descriptors)) closeSync(descriptor)
  }

  /** Why the database is not used until the files are back: the error of the last `check`. */
  get lost(): BrokenDatabaseError | undefined {
    return this.#lost
  }

  /**
   * Throws BrokenDatabaseError while a path does not lead to the file that was opened, which SQLite goes on using
   * (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use), and for good once
   * the file was overwritten, or its log has lost frames: SQLite would write further ones behind the gap.
   */
  check(): void {
    if (this.#cut) throw this.#cut
    let lost: string | undefined
    for (const [path, identity] of this.#files) {
      if (identityOf(statsOf(path)) !== identity) lost ??= path
    }
    if (lost === undefined) this.#lost = undefined
    else
      this.#lost ??= broken(
        `${lost} is no longer the file that the service opened, and new data is lost with the old file: put that back, or restart the service`,
      )
    if (this.#lost) throw this.#lost
    const loss = this.#loss()
    if (loss === undefined) return
    this.#cut = broken(
      `${loss}: stop the service, and see "When the data are lost" in docs/runbook.md`,
    )
    throw this.#cut
  }

  /** Copies what was acknowledged into the database, if its log alone was removed: SQLite still has it. */
  saveLog(database: DatabaseSync): void {
    const isLost = (path: string) => identityOf(statsOf(path)) !== this.#files.get(path)
    if (isLost(this.#main) || !isLost(this.#log) || this.#loss()) return
    // Another process that has made a new log, even an empty one, may write pages that it read before the copy.
    if (!statsOf(this.#log)) database.exec('pragma wal_checkpoint')
  }

  /** Returns what happened to the opened file or log; undefined if they are whole. */
  #loss(): string | undefined {
    const { main, log, index } = this.#descriptors
    // A backup that was copied over the file, for example, has no log.
    const length = readSync(main, this.#head, 0, FILE_HEADER, 0)
    if (length < FILE_HEADER || !hasLog(this.#head))
      return `${basename(this.#main)} was overwritten`
    if (isWhole(index, false, () => fstatSync(log).size)) return undefined
    return `${basename(this.#log)}, a part of the database, was shortened`
  }
}

const broken = (message: string) => new BrokenDatabaseError(new Error(message), true)

const statsOf = (path: string): BigIntStats | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })

/** Returns what identifies a file; undefined if there is none. */
const identityOf = (stats: BigIntStats | undefined): string | undefined =>
  stats && `${stats.dev} ${stats.ino}`
