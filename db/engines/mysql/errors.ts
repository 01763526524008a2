/**
 * The errors of MySQL 8.4 and 9 and of MariaDB 10.6 to 11, by their numbers, because mysql2 has only the
 * names of MySQL:
 * https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
 * https://mariadb.com/docs/server/reference/error-codes
 * From 4000 on, MySQL and MariaDB use a number for different errors. Those of MariaDB concern triggers,
 * cursors and routines, which the service does not have.
 */
import {
  ConflictError,
  DatabaseUnavailableError,
  DuplicateError,
  LockedError,
} from '../../errors.ts'

/** The server is unable to serve further statements of the connection, so another connection is better. */
export class UnfitServerError extends DatabaseUnavailableError {}

const DUPLICATE = 1062 // ER_DUP_ENTRY
const LOCKED = 1205 // ER_LOCK_WAIT_TIMEOUT
const COLUMN_EXISTS = 1060 // ER_DUP_FIELDNAME
const INDEX_EXISTS = 1061 // ER_DUP_KEYNAME

/** The server rolled the transaction back, because of another one. */
const conflict = new Set([
  1020, // ER_CHECKREAD: MariaDB, innodb_snapshot_isolation
  1213, // ER_LOCK_DEADLOCK; Galera: also a conflict with a transaction of another node
  3101, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: group replication, a conflict with another transaction
])

/** The server rejected the statement before it began, or rolled it back. */
const withoutEffect = new Set([
  1040, // ER_CON_COUNT_ERROR
  1044, // ER_DBACCESS_DENIED_ERROR: the operator has revoked a right
  1142, // ER_TABLEACCESS_DENIED_ERROR
  1143, // ER_COLUMNACCESS_DENIED_ERROR
  1203, // ER_TOO_MANY_USER_CONNECTIONS
  1206, // ER_LOCK_TABLE_FULL
  1226, // ER_USER_LIMIT_REACHED
  1637, // ER_TOO_MANY_CONCURRENT_TRXS
])

/** The server rejected the statement before it began, and would reject the next one too. */
const unfit = new Set([
  1047, // ER_UNKNOWN_COM_ERROR: Galera, the node left the cluster
  1290, // ER_OPTION_PREVENTS_STATEMENT: read_only
  1792, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
  1836, // ER_READ_ONLY_MODE
  1874, // ER_INNODB_READ_ONLY
  1881, // ER_INNODB_FORCED_RECOVERY
  3032, // ER_SERVER_OFFLINE_MODE
  3989, // ER_SCHEMA_READ_ONLY
  4031, // ER_CLIENT_INTERACTION_TIMEOUT: the server closed an idle session
  // Group replication: a new primary applies its backlog, and delays statements until then.
  3781, // ER_GR_HOLD_WAIT_TIMEOUT
  3782, // ER_GR_HOLD_KILLED
  3783, // ER_GR_HOLD_MEMBER_STATUS_ERROR
  // Group replication: group_replication_consistency cannot be guaranteed, so no transaction begins.
  3796, // ER_GRP_TRX_CONSISTENCY_NOT_ALLOWED
  3797, // ER_GRP_TRX_CONSISTENCY_BEFORE
  3798, // ER_GRP_TRX_CONSISTENCY_AFTER_ON_TRX_BEGIN
  3799, // ER_GRP_TRX_CONSISTENCY_BEGIN_NOT_ALLOWED
  4094, // ER_OPERATION_NOT_ALLOWED_WHILE_PRIMARY_CHANGE_IS_RUNNING
])

/** The server ended the statement, perhaps after it had an effect. */
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
  1180, // ER_ERROR_DURING_COMMIT: Galera, the node was cut off, perhaps after the others had the transaction
  1317, // ER_QUERY_INTERRUPTED
  1927, // ER_CONNECTION_KILLED: MariaDB
  1969, // ER_STATEMENT_TIMEOUT: MariaDB, max_statement_time
  // A proxy between the service and the server lost the server, or did not reach it:
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

/** The server rejected a row because of its values, so the statement added no row. */
const rejectedRow = new Set([
  1022, // ER_DUP_KEY
  1048, // ER_BAD_NULL_ERROR
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
  1644, // ER_SIGNAL_EXCEPTION, which triggers raise
  1690, // ER_DATA_OUT_OF_RANGE
  3140, // ER_INVALID_JSON_TEXT
  3819, // MySQL: ER_CHECK_CONSTRAINT_VIOLATED
  4025, // MariaDB: ER_CONSTRAINT_FAILED
])

interface DriverError extends Error {
  code?: string
  errno?: number
  /** Whether the error ended the connection. */
  fatal?: boolean
  /** The system call that failed, in an error of the socket. */
  syscall?: string
}

/** Returns an error of mysql2 as an error of db/errors.ts; an error in the statement stays as it is. */
export function mysqlError(error: DriverError): Error {
  const { errno = 0, fatal = false, syscall, message } = error
  // mysql2 adds the statement with all its values, which must not appear in the log.
  Reflect.deleteProperty(error, 'sql')
  if (errno === DUPLICATE) return new DuplicateError(message)
  if (errno === LOCKED) return new LockedError(error, true)
  if (conflict.has(errno)) return new ConflictError(error, true)
  if (unfit.has(errno)) return new UnfitServerError(error, true)
  if (withoutEffect.has(errno)) return new DatabaseUnavailableError(error, true)
  if (!fatal && syscall === undefined && !uncertain.has(errno)) return error
  return new DatabaseUnavailableError(error, fatal && message.endsWith('in closed state'))
}

/** Returns whether the server rejected a row, so that its statement added no row. */
export const isMysqlRowRejected = (error: DriverError): boolean =>
  error instanceof DuplicateError || rejectedRow.has(error.errno ?? 0)

/** Returns whether a new column or index exists already. */
export const existsOnMysql = ({ errno }: DriverError): boolean =>
  errno === COLUMN_EXISTS || errno === INDEX_EXISTS
