/** Databases, and transactions on them: Kysely builds their statements, and a runner executes them. */
import type { Dialect, RawBuilder } from 'kysely'
import type { Builder, Syntax } from './builder.ts'
import type { Queue, QueueSettings } from './queue.ts'
import type { Runner } from './runner.ts'
import type { Demand, Sessions } from './session.ts'

/** A database, a transaction on it, or a session that holds a lock. */
export interface Database extends Builder {
  readonly engine: Engine
  readonly runner: Runner
}

/** A database outside a transaction: what uses it waits in its queue. */
export interface RootDatabase extends Database, AsyncDisposable {
  readonly runner: Queue
  /** Closes it. */
  destroy(): Promise<void>
}

/** What differs between MySQL and SQLite. */
export interface Engine extends Syntax {
  /** The options after `create table (…)`. */
  tableOptions(db: Database): Promise<RawBuilder<unknown>>
  /** Whether the database works in this process, which waits for it. */
  readonly isInProcess: boolean
  /** Runs work under the lock of the database. Throws LockedError if others hold it for a second (MySQL) or five (SQLite). */
  underLock<Result>(db: RootDatabase, work: (session: Database) => Promise<Result>): Promise<Result>
  /**
   * Marks a new database as the service's, in which migrations will create tables. Returns the name of a
   * table that belongs to another program, if there is one. `isOurs`: some migrations have run here.
   */
  claim(db: Database, isOurs: boolean): Promise<string | undefined>
  /** Throws BrokenDatabaseError if the opened files were replaced, removed, or found damaged. */
  checkPlace(): void
}

/** What an engine gives to make a database of. */
export interface EngineParts {
  engine: Engine
  dialect: Omit<Dialect, 'createDriver'>
  settings: QueueSettings
  /** Returns the sessions for what waits for them. */
  createSessions(demand: Demand): Sessions
}
