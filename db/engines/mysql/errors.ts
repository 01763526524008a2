/**
 * The errors of MySQL 8.4 and 9 and of MariaDB 10.6 to 11, by their numbers, because mysql2 has only the
 * names of MySQL:
 * https://dev.mysql.com/doc/mysql-errors/9.4/en/server-error-reference.html
 * https://mariadb.com/docs/server/reference/error-codes
 * From 4000 on, MySQL and MariaDB use a number for different errors. Here, 4025 is MariaDB's; what the others
 * are in MariaDB concerns triggers, cursors and routines, which the service does not have.
 */
import {
  ConflictError,
  DatabaseUnavailableError,
  DuplicateError,
  ExistsError,
  LockedError,
  RejectedRowError,
  RejectedStatementError,
} from '../../errors.ts'
import type { Tls } from '../../url.ts'

/** The server is unable to serve further statements of the connection, so another connection is better. */
export class UnfitServerError extends DatabaseUnavailableError {}

/** A table does not have an index that the statement names, or is a view. */
export class NoIndexError extends Error {}

type Make = (cause: Error) => Error
const rejected: Make = (cause) => new RejectedRowError(cause.message, { cause })
const without: Make = (cause) => new DatabaseUnavailableError(cause, true)
const unfit: Make = (cause) => new UnfitServerError(cause, true)
const unknown: Make = (cause) => new DatabaseUnavailableError(cause, false)
const conflict: Make = (cause) => new ConflictError(cause, true)

/** What a server did with the statement that it answered with an error, by the numbers of the errors. */
const errors: [numbers: string, make: Make][] = [
  ['1062', ({ message }) => new DuplicateError(message)],
  // It rejected a row because of its values, so the statement added no row.
  ['1022 1048 1153 1169 1216 1264 1265 1292 1366 1406 1411 1452 1526 1586 1644 1690', rejected],
  ['1369 3140 3819 4025', rejected],
  // It rolled the transaction back, because of another one.
  ['1020 1213', conflict], // MariaDB with innodb_snapshot_isolation; a deadlock, or another node of Galera
  ['3101', conflict], // another member of group replication
  // It ended the statement: an operator did, or another node of Galera, which changes the table.
  ['1317', (cause) => new ConflictError(cause, false)],
  ['1205 3572', (cause) => new LockedError(cause, true)], // 3572: without a wait
  // It rejected the statement before it began, or rolled it back.
  ['1040 1129 1203 1206 1226 1637', without], // too many connections, broken connections, locks, transactions
  ['9006', without], // the rules of ProxySQL send it to other servers than those of its session
  // It rejected the statement before it began, and would reject the next one too.
  ['1036 1290 1792 1836 1874 1881 3032 3989', unfit], // it may not write, such as with read_only
  // The operator has revoked a right. A session keeps the rights of its log-in, also when they are granted again.
  ['1044 1142 1143', unfit],
  ['4031 1047', unfit], // it has closed an idle session; the node has left the Galera cluster
  ['3781 3782 3783 3796 3797 3798 3799 4094', unfit], // group replication, while the primary changes
  // It ended the statement, perhaps after it had an effect.
  ['1021 1026 1028 1030 1037 1041 1114 3015 3019 3675 4081 4082', unknown], // no space, no memory, a bad disk
  ['1053 1077 1158 1159 1160 1161', unknown], // it stops, or its network fails
  ['1927 1969 3024 3169', unknown], // the session was killed, or the statement took too long
  ['1180 3100', unknown], // a node of Galera or of group replication was cut off during a commit
  ['2002 2003 2006 2013 2055', unknown], // a proxy lost it
  ['9001 9002 9004', unknown], // ProxySQL lost it: https://proxysql.com/documentation/error-codes
  ['1060 1061', ({ message }) => new ExistsError(message)],
  ['1176', ({ message }) => new NoIndexError(message)],
]

const known = new Map(
  errors.flatMap(([numbers, make]) => numbers.split(' ').map((number) => [Number(number), make])),
)

/** `syscall` is set in an error of the socket. `fatal` says whether the error ended the connection. */
type DriverError = NodeJS.ErrnoException & {
  fatal?: boolean
  sqlState?: string
  sqlMessage?: string
}

/** Returns an error of mysql2 as an error of db/errors.ts; one of the driver itself stays as it is. */
export function mysqlError(error: DriverError): Error {
  const { errno = 0, fatal = false, sqlState, syscall } = error
  // mysql2 adds the statement with all its values, and the server quotes some: none may appear in the log.
  Reflect.deleteProperty(error, 'sql')
  const text = withoutValues(error.message)
  error.stack = `${error.stack}`.replace(error.message, () => text)
  error.message = text
  if (error.sqlMessage !== undefined) error.sqlMessage = text
  // A trigger signals 45000 with any number. Those below 1000 are of the server's files, such as for a full disk.
  const isUnknown = fatal || syscall !== undefined || (errno > 0 && errno < 1_000)
  const make = known.get(errno) ?? ((sqlState === '45000' && rejected) || (isUnknown && unknown))
  if (make) return make(error)
  // Without a number it is an error of the driver.
  return errno > 0 ? new RejectedStatementError(text, { cause: error }) : error
}

/**
 * Access denied; the same without a password (MariaDB); password expired; account locked, by MySQL and by
 * MariaDB; locked after too many refusals, by MySQL and by MariaDB. A server may count such log-ins.
 */
const REFUSALS = [1045, 1698, 1862, 3118, 4151, 3955, 4150]

/** Whether a server has refused the log-in of the user. */
export const isRefusal = (error: unknown): boolean =>
  REFUSALS.includes((error as DriverError)?.errno ?? 0)

/**
 * A value that an error quotes: of a row (1062, 1292, 1366, 1411, 1525, 1586), or in a part of the statement (1064).
 * It may contain quotes. The name of the key or column behind it stays.
 */
const QUOTED =
  /\b(entry|record|(?:value|string):?|converting|near) '(?:.*'(?= for (?:key|column|function|option) )|.*'(?= would )|.*')/is

/** Returns the text of an error without the values of the statement. The session has its texts in English. */
function withoutValues(text: string): string {
  return text
    .replace(QUOTED, "$1 '…'")
    .replace(/(?<=no partition for value ).*/is, '…') // 1526
    .replace(/(?<=out of range in ').*/is, (expression) =>
      expression.replace(/'.*'(?=.*')|(?<![\w`.])\d[\d.e]*/gis, '…'),
    ) // 1690
}

/** The plugins of servers for which mysql2 can log in. */
const PLUGINS = 'mysql_native_password, caching_sha2_password or sha256_password'

/** Returns why a connection could not be opened, with the remedy where the server does not say it. */
export function openError(error: DriverError, tls: Tls | undefined): Error {
  const { code, errno, message } = error
  if (error instanceof EvalError) {
    const reason = 'the driver compiles a function for each kind of row: start Node without'
    return new Error(`${reason} --disallow-code-generation-from-strings`, { cause: error })
  }
  if (code === 'AUTH_SWITCH_PLUGIN_ERROR' || code === 'MYSQL_CLEAR_PASSWORD_NOT_ENABLED') {
    // The rest of the driver's message is for programmers.
    const [what] = message.split(/[,.] /)
    return new Error(`${what}: the user must log in by ${PLUGINS}`, { cause: error })
  }
  // ER_ACCESS_DENIED_ERROR, ER_SECURE_TRANSPORT_REQUIRED
  if (!tls && (errno === 1045 || errno === 3159)) {
    error.message += '; if it requires TLS, DATABASE_URL must end in ?ssl-mode=REQUIRED'
  } else if (!tls?.files.cert && errno === 1045) {
    error.message +=
      '; if it requires a client certificate, DATABASE_URL must have ssl-cert and ssl-key, too'
  }
  return error
}
