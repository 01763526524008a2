/** The errors that this folder throws, for all databases alike. */

/** The database is unusable at the moment; a later attempt may succeed. `cause` is the reason. */
export class DatabaseUnavailableError extends Error {
  /** Whether the statement certainly had no effect, so that it can be sent again. */
  readonly hadNoEffect: boolean

  constructor(cause: unknown, hadNoEffect: boolean) {
    super('The database cannot be used right now', { cause })
    this.name = new.target.name
    this.hadNoEffect = hadNoEffect
  }
}

/** The deadline of the call has passed, so no other attempt is made. `timeout` is in milliseconds. */
export class DatabaseTimeoutError extends DatabaseUnavailableError {
  constructor(timeout: number) {
    super(new Error(`The database did not answer within ${timeout} ms`), false)
  }
}

/** There is no database of the service: its file does not exist, or its tables do not. */
export class MissingDatabaseError extends DatabaseUnavailableError {
  constructor(message: string) {
    super(new Error(message), true)
  }
}

/** A queue is full. The call is rejected at once, because another attempt would add to the load. */
export class OverloadedError extends DatabaseUnavailableError {
  constructor(message: string) {
    super(new Error(message), true)
  }
}

/** Another transaction holds a lock that the statement needs, and did not release it in time. */
export class LockedError extends DatabaseUnavailableError {}

/** Another transaction was in the way, so the database has undone or interrupted this one. */
export class ConflictError extends DatabaseUnavailableError {}

/** Another request has stored an Idempotency-Key meanwhile: look for the key before another attempt. */
export class KeyTakenError extends ConflictError {}

/** The database is closed, or its files were replaced, removed or damaged, so an operator must act. Not repeated. */
export class BrokenDatabaseError extends DatabaseUnavailableError {}

/** The database reports damage of its file. */
export class DamagedDatabaseError extends BrokenDatabaseError {}

/** The database answered a statement with an error, and has undone what it did. `cause` is the reason. */
export class RejectedStatementError extends Error {
  override name = 'RejectedStatementError'
}

/** The database rejected a row because of its values, so its statement added no row. */
export class RejectedRowError extends RejectedStatementError {
  override name = 'RejectedRowError'
}

/** A unique index already contains the values of a new row. */
export class DuplicateError extends RejectedRowError {
  override name = 'DuplicateError'
}

/** The table has the new column or index already. */
export class ExistsError extends Error {}
