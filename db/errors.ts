/** Tells a database that cannot be used right now from a query that is wrong. */

/** The database cannot be used right now; trying again later may work. `cause` says why. */
export class DatabaseUnavailableError extends Error {
  /** Whether the statement provably had no effect, so that it may be sent again. */
  readonly hadNoEffect: boolean

  constructor(cause: unknown, hadNoEffect: boolean) {
    super('The database cannot be used right now', { cause })
    this.name = new.target.name
    this.hadNoEffect = hadNoEffect
  }
}

/** The time for an answer is up: there is none left for another attempt. */
export class DatabaseTimeoutError extends DatabaseUnavailableError {
  constructor(timeout: number) {
    super(new Error(`The database did not answer within ${timeout} ms`), false)
  }
}

/** More wait than may wait: whoever comes now is refused at once. */
export class OverloadedError extends DatabaseUnavailableError {
  constructor(what: string) {
    super(new Error(what), true)
  }
}

/** The server is not one that may be written to, or asked, any more: another connection may be better. */
export class UnfitServerError extends DatabaseUnavailableError {}

/** Somebody else's transaction holds what the statement needs, and did not let go in time. */
export class LockedError extends DatabaseUnavailableError {}

/** The unique index that a new row would have broken has this row already. */
export class DuplicateError extends Error {
  override name = 'DuplicateError'
}

/** The server does not promise that the ids of one insert are consecutive; nothing was sent. */
export class NoConsecutiveIdsError extends Error {
  override name = 'NoConsecutiveIdsError'
}

// https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
// Refused before it began, or rolled back by the server.
const withoutEffect = new Set([
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_LOCK_DEADLOCK', // Galera: also a transaction that another node's was preferred to
  'ER_TRANSACTION_ROLLBACK_DURING_COMMIT', // group replication: another's was preferred
])

// Refused by a server that became a replica, or (Galera) left the cluster.
const unfit = new Set([
  'ER_OPTION_PREVENTS_STATEMENT',
  'ER_READ_ONLY_MODE',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_UNKNOWN_COM_ERROR',
])

const uncertain = new Set([
  'ER_SERVER_SHUTDOWN',
  'ER_NORMAL_SHUTDOWN',
  'ER_QUERY_INTERRUPTED',
  'ER_QUERY_TIMEOUT',
  'ER_ERROR_DURING_COMMIT', // Galera: the node was cut off, maybe after it told the others
  'ER_RUN_HOOK_ERROR', // group replication: the member was cut off during a commit
  'ER_DISK_FULL',
  'ER_RECORD_FILE_FULL',
])

// MariaDB's, which mysql2 has no name for: https://mariadb.com/docs/server/reference/error-codes
const CONNECTION_KILLED = 1927

// https://sqlite.org/rescode.html: BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, NOTADB
const sqliteUnavailable = new Set([5, 6, 8, 10, 13, 14, 26])
// SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY: other constraints mean other mistakes.
const sqliteDuplicate = new Set([2067, 1555])

// A row is refused for what it is; a statement with such a row has added none:
// https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html,
// https://mariadb.com/docs/server/reference/error-codes
const refusesRow = new Set([
  1022, // ER_DUP_KEY
  1048, // ER_BAD_NULL_ERROR
  1062, // ER_DUP_ENTRY
  1153, // ER_NET_PACKET_TOO_LARGE: each row alone may be small enough
  1169, // ER_DUP_UNIQUE
  1216, // ER_NO_REFERENCED_ROW
  1264, // ER_WARN_DATA_OUT_OF_RANGE
  1265, // WARN_DATA_TRUNCATED
  1292, // ER_TRUNCATED_WRONG_VALUE
  1366, // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
  1406, // ER_DATA_TOO_LONG
  1411, // ER_WRONG_VALUE_FOR_TYPE
  1452, // ER_NO_REFERENCED_ROW_2
  1526, // ER_NO_PARTITION_FOR_GIVEN_VALUE
  1586, // ER_DUP_ENTRY_WITH_KEY_NAME
  1644, // ER_SIGNAL_EXCEPTION, by which triggers refuse
  1690, // ER_DATA_OUT_OF_RANGE
  3140, // ER_INVALID_JSON_TEXT
  3819, // MySQL: ER_CHECK_CONSTRAINT_VIOLATED
  4025, // MariaDB: ER_CONSTRAINT_FAILED
])

/** Whether the error is about a row, so that the others of its statement may be added without it. */
export const isRowRefused = (error: unknown): boolean =>
  error instanceof DuplicateError || refusesRow.has((error as DriverError | undefined)?.errno ?? 0)

interface DriverError extends Error {
  code?: string
  errno?: number
  fatal?: boolean
  errcode?: number
  syscall?: string
}

/** The error of mysql2 or node:sqlite as one of those above, where it is one; else as it is. */
export function databaseError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code = '', errno, fatal, errcode = 0, syscall, message } = error as DriverError
  if (code === 'ERR_SQLITE_ERROR') {
    if (sqliteUnavailable.has(errcode & 0xff)) return new DatabaseUnavailableError(error, true)
    return sqliteDuplicate.has(errcode) ? new DuplicateError(message) : error
  }
  if (code === 'ER_DUP_ENTRY') return new DuplicateError(message)
  if (code === 'ER_LOCK_WAIT_TIMEOUT') return new LockedError(error, true)
  // mysql2 puts the statement on its errors, with all values: that is not for the log.
  Reflect.deleteProperty(error, 'sql')
  if (unfit.has(code)) return new UnfitServerError(error, true)
  if (withoutEffect.has(code)) return new DatabaseUnavailableError(error, true)
  // mysql2 marks what ended the connection as fatal; what the socket threw has a system call.
  const wasClosed = fatal === true && message.endsWith('in closed state')
  const isLost = fatal === true || syscall !== undefined || errno === CONNECTION_KILLED
  return isLost || uncertain.has(code) ? new DatabaseUnavailableError(error, wasClosed) : error
}
