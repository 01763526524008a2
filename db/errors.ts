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

// The errors of MySQL 8.4 and 9 and of MariaDB 10.6 to 11 after which another attempt may succeed, by
// their numbers, since mysql2 has the names of MySQL only:
// https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
// https://mariadb.com/docs/server/reference/error-codes
// From 4000 on a number is one thing on MySQL and another on MariaDB, where it is about triggers,
// cursors and routines: the service has none.

const DUPLICATE = 1062 // ER_DUP_ENTRY
const LOCKED = 1205 // ER_LOCK_WAIT_TIMEOUT

// Refused before it began, or rolled back by the server.
const withoutEffect = new Set([
  1020, // ER_CHECKREAD: MariaDB, innodb_snapshot_isolation
  1040, // ER_CON_COUNT_ERROR
  1203, // ER_TOO_MANY_USER_CONNECTIONS
  1206, // ER_LOCK_TABLE_FULL
  1213, // ER_LOCK_DEADLOCK; Galera: also a transaction that another node's was preferred to
  1226, // ER_USER_LIMIT_REACHED
  1637, // ER_TOO_MANY_CONCURRENT_TRXS
  3101, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: group replication, another's was preferred
])

// Refused before it began by a server, or on a connection, that is no good for the next one either.
const unfit = new Set([
  1047, // ER_UNKNOWN_COM_ERROR: Galera, the node left the cluster
  1290, // ER_OPTION_PREVENTS_STATEMENT: read_only
  1792, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
  1836, // ER_READ_ONLY_MODE
  1874, // ER_INNODB_READ_ONLY
  1881, // ER_INNODB_FORCED_RECOVERY
  3032, // ER_SERVER_OFFLINE_MODE
  3989, // ER_SCHEMA_READ_ONLY
  4031, // ER_CLIENT_INTERACTION_TIMEOUT: sent before the server reads another statement
  // Group replication: a new primary applies what it has received, and holds statements meanwhile.
  3781, // ER_GR_HOLD_WAIT_TIMEOUT
  3782, // ER_GR_HOLD_KILLED
  3783, // ER_GR_HOLD_MEMBER_STATUS_ERROR
  // Group replication: a transaction does not begin, since group_replication_consistency cannot be kept.
  3796, // ER_GRP_TRX_CONSISTENCY_NOT_ALLOWED
  3797, // ER_GRP_TRX_CONSISTENCY_BEFORE
  3798, // ER_GRP_TRX_CONSISTENCY_AFTER_ON_TRX_BEGIN
  3799, // ER_GRP_TRX_CONSISTENCY_BEGIN_NOT_ALLOWED
  4094, // ER_OPERATION_NOT_ALLOWED_WHILE_PRIMARY_CHANGE_IS_RUNNING
])

// Ended by the server, maybe after it took effect.
const uncertain = new Set([
  1021, // ER_DISK_FULL
  1026, // ER_ERROR_ON_WRITE
  1028, // ER_FILSORT_ABORT
  1030, // ER_GET_ERRNO: the storage engine's error, such as a full disk
  1037, // ER_OUTOFMEMORY
  1041, // ER_OUT_OF_RESOURCES
  1053, // ER_SERVER_SHUTDOWN
  1077, // ER_NORMAL_SHUTDOWN
  1114, // ER_RECORD_FILE_FULL
  1158, // ER_NET_READ_ERROR
  1159, // ER_NET_READ_INTERRUPTED
  1160, // ER_NET_ERROR_ON_WRITE
  1161, // ER_NET_WRITE_INTERRUPTED
  1180, // ER_ERROR_DURING_COMMIT: Galera, the node was cut off, maybe after it told the others
  1317, // ER_QUERY_INTERRUPTED
  1927, // ER_CONNECTION_KILLED: MariaDB
  1969, // ER_STATEMENT_TIMEOUT: MariaDB, max_statement_time
  // A proxy in between was the client, and lost the server, or did not reach it:
  // https://dev.mysql.com/doc/mysql-errors/9.4/en/client-error-reference.html
  // https://proxysql.com/documentation/error-codes
  2002, // CR_CONNECTION_ERROR
  2003, // CR_CONN_HOST_ERROR
  2006, // CR_SERVER_GONE_ERROR
  2013, // CR_SERVER_LOST
  2055, // CR_SERVER_LOST_EXTENDED
  9001, // ProxySQL: no connection to a server in time
  9002, // ProxySQL: no connection to a server
  9004, // ProxySQL: the server is offline
  3015, // ER_ENGINE_OUT_OF_MEMORY
  3019, // ER_INNODB_UNDO_LOG_FULL
  3024, // ER_QUERY_TIMEOUT: MySQL, max_execution_time
  3100, // ER_RUN_HOOK_ERROR: group replication, the member was cut off during a commit
  3169, // ER_SESSION_WAS_KILLED
  3675, // ER_DISK_FULL_NOWAIT
  4081, // ER_DA_GLOBAL_CONN_LIMIT: global_connection_memory_limit
  4082, // ER_DA_CONN_LIMIT: connection_memory_limit
])

// https://sqlite.org/rescode.html#busy: another process has the lock; also _RECOVERY and _SNAPSHOT.
const SQLITE_BUSY = 5
// LOCKED, READONLY, IOERR, FULL, CANTOPEN, NOTADB
const sqliteUnavailable = new Set([6, 8, 10, 13, 14, 26])
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

// https://sqlite.org/rescode.html#constraint
const SQLITE_CONSTRAINT = 19

/** Whether the error is about a row, so that the others of its statement may be added without it. */
export function isRowRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { errno = 0, errcode = 0 }: DriverError = error
  const isConstraint = (errcode & 0xff) === SQLITE_CONSTRAINT
  return error instanceof DuplicateError || isConstraint || refusesRow.has(errno)
}

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
  const { code, errno = 0, fatal, errcode = 0, syscall, message } = error as DriverError
  if (code === 'ERR_SQLITE_ERROR') {
    if ((errcode & 0xff) === SQLITE_BUSY) return new LockedError(error, true)
    if (sqliteUnavailable.has(errcode & 0xff)) return new DatabaseUnavailableError(error, true)
    return sqliteDuplicate.has(errcode) ? new DuplicateError(message) : error
  }
  if (errno === DUPLICATE) return new DuplicateError(message)
  if (errno === LOCKED) return new LockedError(error, true)
  // mysql2 puts the statement on its errors, with all values: that is not for the log.
  Reflect.deleteProperty(error, 'sql')
  if (unfit.has(errno)) return new UnfitServerError(error, true)
  if (withoutEffect.has(errno)) return new DatabaseUnavailableError(error, true)
  // mysql2 marks what ended the connection as fatal; what the socket threw has a system call.
  const wasClosed = fatal === true && message.endsWith('in closed state')
  const isLost = fatal === true || syscall !== undefined
  return isLost || uncertain.has(errno) ? new DatabaseUnavailableError(error, wasClosed) : error
}
