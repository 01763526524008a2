/** Tells a database that cannot be used right now from a query that is wrong. */

/** The database cannot be used right now; trying again later may work. `cause` says why. */
export class DatabaseUnavailableError extends Error {
  override name = 'DatabaseUnavailableError'
  /** Whether the statement provably had no effect, so that it may be sent again. */
  readonly hadNoEffect: boolean

  constructor(cause: unknown, hadNoEffect: boolean) {
    super('The database cannot be used right now', { cause })
    this.hadNoEffect = hadNoEffect
  }
}

/** The time for an answer is up: there is none left for another attempt. */
export class DatabaseTimeoutError extends DatabaseUnavailableError {
  override name = 'DatabaseTimeoutError'
  constructor(timeout: number) {
    super(new Error(`The database did not answer within ${timeout} ms`), false)
  }
}

/** Somebody else's transaction holds what the statement needs, and did not let go in time. */
export class LockedError extends DatabaseUnavailableError {
  override name = 'LockedError'
}

/** The unique index that a new row would have broken has this row already. */
export class DuplicateError extends Error {
  override name = 'DuplicateError'
}

// https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
// Refused before it began, or rolled back by the server.
const withoutEffect = new Set([
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_LOCK_DEADLOCK', // Galera: also a transaction that another node's was preferred to
  'ER_OPTION_PREVENTS_STATEMENT', // read_only, while a replica is being promoted
  'ER_READ_ONLY_MODE',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_TRANSACTION_ROLLBACK_DURING_COMMIT', // group replication: another's was preferred
  'ER_UNKNOWN_COM_ERROR', // Galera: the node is not part of the cluster
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
const SQLITE_CONSTRAINT = 19

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
    return (errcode & 0xff) === SQLITE_CONSTRAINT ? new DuplicateError(message) : error
  }
  if (code === 'ER_DUP_ENTRY') return new DuplicateError(message)
  if (code === 'ER_LOCK_WAIT_TIMEOUT') return new LockedError(error, true)
  if (withoutEffect.has(code)) return new DatabaseUnavailableError(error, true)
  // mysql2 marks what ended the connection as fatal; what the socket threw has a system call.
  const wasClosed = fatal === true && message.endsWith('in closed state')
  const isLost = fatal === true || syscall !== undefined || errno === CONNECTION_KILLED
  return isLost || uncertain.has(code) ? new DatabaseUnavailableError(error, wasClosed) : error
}
