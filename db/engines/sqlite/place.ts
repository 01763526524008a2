/** Whether the files of an open SQLite database are still those that were opened. */
import { realpathSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { BrokenDatabaseError } from '../../errors.ts'

/** The place of a database: its file, its log, and the index of the log. */
export class Place {
  /** The files, by their paths, each with what identified it when it was opened. */
  readonly #files: Map<string, string | undefined>
  readonly #main: string
  readonly #log: string
  #lost: BrokenDatabaseError | undefined

  /** Takes note of the files of a database that was just opened at `path`. */
  constructor(path: string) {
    const target = realpathSync(path) // beside it SQLite keeps the log of a link
    this.#main = path
    this.#log = `${target}-wal`
    const paths = [this.#main, this.#log, `${target}-shm`]
    this.#files = new Map(paths.map((name) => [name, identityOf(name)]))
  }

  /** Why the database is not used until the files are back: the error of the last `check`. */
  get lost(): BrokenDatabaseError | undefined {
    return this.#lost
  }

  /**
   * Throws BrokenDatabaseError if a path no longer leads to the file that was opened, which SQLite goes on
   * using: https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use
   */
  check(): void {
    const lost = this.#files.keys().find((path) => this.#isLost(path))
    if (lost === undefined) {
      this.#lost = undefined
      return
    }
    if (!this.#lost) {
      const message = `${lost} is no longer the file that the service opened, and new data is lost with the old file: put that back, or restart the service`
      this.#lost = new BrokenDatabaseError(new Error(message), true)
    }
    throw this.#lost
  }

  /** Copies what was acknowledged into the database, if its log alone was removed: SQLite still has it. */
  saveLog(database: DatabaseSync): void {
    if (this.#isLost(this.#main) || !this.#isLost(this.#log)) return
    // A process that only reads makes an empty log; one that writes uses the database without the lost one.
    const isUsed = (statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0) > 0
    if (!isUsed) database.exec('pragma wal_checkpoint')
  }

  #isLost(path: string): boolean {
    return identityOf(path) !== this.#files.get(path)
  }
}

/** Returns what identifies the file at a path; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev} ${stats.ino}`
}
