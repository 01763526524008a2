/** Tells a database that cannot be used right now from a query that is wrong. */

/** The database cannot be used right now; trying again later may work. `cause` says why. */
export class DatabaseUnavailableError extends Error {
  override name = 'DatabaseUnavailableError'
  constructor(cause: unknown) {
    super('The database cannot be used right now', { cause })
  }
}

// https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
const mysqlErrors = new Set([
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_SERVER_SHUTDOWN',
  'ER_NORMAL_SHUTDOWN',
  'ER_QUERY_INTERRUPTED',
  'ER_QUERY_TIMEOUT',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_OPTION_PREVENTS_STATEMENT', // read_only, while a replica is being promoted
  'ER_READ_ONLY_MODE',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_UNKNOWN_COM_ERROR', // Galera: the node is not part of the cluster
  'ER_DISK_FULL',
  'ER_RECORD_FILE_FULL',
])

// https://sqlite.org/rescode.html: BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, NOTADB
const sqliteErrors = new Set([5, 6, 8, 10, 13, 14, 26])

/** Whether an error of mysql2 or node:sqlite says that the database, not the query, is at fault. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, fatal, errcode, syscall } = error as Error & {
    code?: string
    fatal?: boolean
    errcode?: number
    syscall?: string
  }
  if (code === 'ERR_SQLITE_ERROR') return sqliteErrors.has((errcode ?? 0) & 0xff)
  // mysql2 marks what ended the connection as fatal; what the socket threw has a system call.
  return fatal === true || syscall !== undefined || mysqlErrors.has(code ?? '')
}
