/** What the queue knows of an engine: its sessions, and where they come from. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'

/** A session with a database: it executes one statement at a time, or one transaction. */
export interface Session {
  /** Whether the ids of one insert are consecutive, so that the first one tells all of them. */
  readonly hasConsecutiveIds: boolean
  /** Whether its transaction goes on, as far as the session knows: on SQLite, some errors end it. */
  readonly isInTransaction: boolean
  /** The deadline ends the statement, also on the server. Throws its reason, and the errors of db/errors.ts. */
  execute<Row>(statement: CompiledQuery, deadline: Deadline): Promise<QueryResult<Row>>
  begin(deadline: Deadline): Promise<void>
  commit(deadline: Deadline): Promise<void>
  /** Never throws: a session that cannot roll back ends, and its transaction with it. */
  rollback(deadline: Deadline): Promise<void>
}

/** The sessions of a database that are not in use. */
export interface Sessions {
  /** Returns a session that works, if there is one at once. */
  take(): Session | undefined
  /** Asks for `count` sessions, after `take` has returned none. The sessions answer by the functions of `Demand`. */
  prepare(count: number): void
  giveBack(session: Session): void
  /**
   * Only of a database that works in this process (`engine.isInProcess`): executes a read at once. Returns undefined
   * where it must wait. `isShared`: its rows may be those of an equal read of this turn of the event loop or the one
   * before. Throws the errors of db/errors.ts.
   */
  readonly readNow?: (
    statement: CompiledQuery,
    isShared?: boolean,
  ) => QueryResult<never> | undefined
  /** Closes the sessions, on a server each after its use. Never throws. */
  close(): void
}

/** What waits for sessions: the queue. */
export interface Demand {
  /** Begins what waits: `take` may return a session now. */
  decide(): void
  /** Rejects what waits: no session can be had. */
  fail(error: unknown): void
}
