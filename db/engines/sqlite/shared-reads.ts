/**
 * Equal reads of two turns of the event loop, which share their rows: many visitors who ask for the same page. Each sees
 * every commit that ended before it began: those of this process by `clear`, those of others by the version.
 */
import type { CompiledQuery, QueryResult } from 'kysely'

interface Read {
  values: readonly unknown[]
  /** A version that the database had before the read: unknown until one was asked for, so that an equal read is executed. */
  version: unknown
  result: QueryResult<never>
}

export class SharedReads {
  /** Returns what differs after each commit of another process. */
  readonly #askVersion: () => unknown
  /** The version when it was last asked for. */
  #version: unknown
  /** The latest read of each statement in these turns. */
  #reads: Map<string, Read> | undefined

  constructor(askVersion: () => unknown) {
    this.#askVersion = askVersion
  }

  /** Returns the result of an equal read, if nothing was committed since. Otherwise `execute` returns that of this one. */
  read({ sql, parameters }: CompiledQuery, execute: () => QueryResult<never>): QueryResult<never> {
    const equal = this.#reads?.get(sql)
    if (equal?.values.every((value, index) => value === parameters[index])) {
      this.#version = this.#askVersion()
      if (equal.version === this.#version) return equal.result
    }
    const result = execute()
    this.#reads ??= this.#newReads()
    this.#reads.set(sql, { values: parameters, version: this.#version, result })
    return result
  }

  /** Lets no later read share the rows of an earlier one: this process may have committed. */
  clear(): void {
    this.#reads = undefined
  }

  #newReads(): Map<string, Read> {
    setImmediate(() => setImmediate(() => this.clear()))
    return new Map()
  }
}
