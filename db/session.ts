/** What the queue knows of an engine: its sessions, the statements that they execute, and where sessions come from. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'

/** A statement with options. Kysely passes the object to its connection unchanged. */
export interface Statement<Row = unknown> extends CompiledQuery<Row> {
  /** The deadline that ends the statement, also on the server. */
  deadline?: Deadline | undefined
  /** Whether the statement only reads, so that it does not wait behind writes; by default a `selectFrom` does, and raw SQL may write. */
  isRead?: boolean
  /** Whether it takes the next free lane, or one beyond all, before the calls that wait: for readiness. */
  isAhead?: boolean
  /** Throws NoConsecutiveIdsError if the server does not guarantee consecutive ids. */
  needsConsecutiveIds?: boolean
}

/** A session with a database: it executes one statement at a time, or one transaction. */
export interface Session {
  /** Throws the errors of db/errors.ts, and the reason of the deadline. */
  execute<Row>(statement: Statement, deadline: Deadline): Promise<QueryResult<Row>>
  begin(deadline: Deadline): Promise<void>
  commit(deadline: Deadline): Promise<void>
  /** Never throws: a session that cannot roll back ends, and its transaction with it. */
  rollback(deadline: Deadline): Promise<void>
}

/** The sessions of a database that no lane uses. */
export interface Sessions {
  /** Returns a session that works, if there is one at once. */
  take(): Session | undefined
  /**
   * Is called when calls wait, and `take` has returned none: `count` lanes could begin. The sessions call
   * `decide` of the lanes once `take` may return one, or `fail` if none can be had.
   */
  prepare(count: number): void
  giveBack(session: Session): void
  /** Ends the sessions, on a server each after its use. Never throws. */
  end(): void
}
