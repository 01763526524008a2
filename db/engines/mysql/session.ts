/** Opens a connection to a MySQL server: the socket, the log-in, the session with its settings and checks. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type RowDataPacket,
} from 'mysql2'
import { TABLES } from '../../tables.ts'
import { openError } from './errors.ts'

/**
 * Milliseconds that the log-in may take after TCP has accepted the connection. That is longer than a call
 * waits: a server that hangs counts each connection that its client closes before the log-in ends, and after
 * a hundred it blocks the client's address for good (error 1129):
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html#sysvar_max_connect_errors
 */
const LOG_IN_TIMEOUT = 60_000

/**
 * Milliseconds of silence after which TCP probes the server; after ten seconds more without a reply the
 * connection is lost: https://nodejs.org/api/net.html#socketsetkeepaliveenable-initialdelay
 */
const KEEP_ALIVE_DELAY = 10_000

/** A server, and how a connection to it is opened. */
export interface Address {
  /** Where it listens: a host and a port, or a socket of this machine. */
  at: { host: string; port: number } | { path: string }
  options: ConnectionOptions
  /** Milliseconds for TCP, and for the session. */
  timeout: number
  /** Is called with what an operator should know. */
  warn(message: string): void
}

/** A use for a statement that reads or that may write; or for the kill of a session, beyond the limits. */
export type Use = 'read' | 'write' | 'kill'

/** A session with a server. All times are those of performance.now(). */
export interface Session {
  readonly connection: Connection
  /**
   * `destroy()` ends the session at once, without a message to the server, which may be unreachable. Once it
   * is `destroyed`, no statement can be sent.
   */
  readonly socket: Socket
  readonly server: ReturnType<typeof toServer>
  readonly openedAt: number
  /** When it was last known to work. */
  workedAt: number
  /** What it is used for; undefined while it is idle. */
  use: Use | undefined
}

/** Opens a connection, and sets up its session. Throws the reason, for the operator. */
export async function open(
  { at, options, timeout, warn }: Address,
  signal: AbortSignal,
): Promise<Session> {
  const openedAt = performance.now()
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY, noDelay: true }
  const socket = connect({ ...at, ...keepAlive }).on('error', () => {}) // each step throws it
  const close = () => socket.destroy(new Error('The server does not answer'))
  signal.addEventListener('abort', close)
  const within = async <Result>(milliseconds: number, step: Promise<Result>): Promise<Result> => {
    const timer = setTimeout(close, milliseconds)
    return await step.finally(() => clearTimeout(timer))
  }
  try {
    await within(timeout, once(socket, 'connect'))
    const connection = createConnection({ ...options, stream: socket, connectTimeout: 0 })
    connection.on('error', () => {}) // as above
    await within(LOG_IN_TIMEOUT, promisify(connection.connect).call(connection))
    const server = await within(timeout, setUp(connection, warn))
    return { connection, socket, server, openedAt, workedAt: performance.now(), use: undefined }
  } catch (error) {
    socket.destroy()
    throw openError(error as Error, options.ssl !== undefined) // Node and mysql2 throw nothing else
  } finally {
    signal.removeEventListener('abort', close)
  }
}

/** The collation of statements and answers; mysql2 encodes statements in its character set. */
export const COLLATION = 'utf8mb4_bin'
const CHARACTER_SET = 'utf8mb4'

/** Without a strict mode, MySQL truncates values without an error; mysql2 escapes with backslashes. */
const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'

/**
 * The isolation level. A transaction that has locked a row must read what others committed before, and not
 * what it was when the transaction began:
 * https://dev.mysql.com/doc/refman/9.4/en/innodb-transaction-isolation-levels.html
 */
const ISOLATION = 'READ-COMMITTED'

/**
 * The statements that set up a session, with what the code depends on:
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html
 * https://dev.mysql.com/doc/refman/9.4/en/innodb-parameters.html
 */
const SET_UP = [
  'rollback', // of a transaction that init_connect or a proxy has left open
  // Its variable has different names in MySQL and in MariaDB before 11.1.
  `set session transaction isolation level ${ISOLATION.replace('-', ' ')}`,
  `set session ${[
    // The server commits a statement outside a transaction at once. A commit begins no transaction.
    "autocommit = 'ON', completion_type = 'NO_CHAIN'",
    `sql_mode = '${SQL_MODE}'`,
    // The server rejects a row with a used Idempotency-Key.
    "unique_checks = 'ON'",
    "default_storage_engine = 'InnoDB'",
    "sql_safe_updates = 'OFF'", // a migration updates all rows
    // A query without a limit returns all rows, however many it reads.
    "sql_select_limit = 18446744073709551615, sql_big_selects = 'ON'",
    // Seconds that a statement waits for the lock of a row.
    'innodb_lock_wait_timeout = 1',
    // Seconds that a statement waits for the lock of a table: as long as a call may wait for the database.
    'lock_wait_timeout = 30',
    // Seconds after which the server ends an idle session: longer than the pool keeps one. If a process and
    // its connection are lost at once, its transaction would otherwise hold its locks for eight hours.
    // MariaDB may end a list at the limit of a statement as if it were empty. MySQL reads a comment here.
    'wait_timeout = 60 /*M! , max_statement_time = 0 */',
    `names ${CHARACTER_SET} collate ${COLLATION}`,
  ].join(', ')}`,
]

/**
 * What is read back, because a proxy may answer SET itself or drop it. No server has this `sql_mode` by
 * default, so it shows that the second statement arrived as a whole.
 */
const EXPECTED = {
  autocommit: 'ON',
  sql_mode: SQL_MODE,
  // With another character set, a server would find the end of a text at another place than mysql2.
  character_set_client: CHARACTER_SET,
  character_set_connection: CHARACTER_SET,
  character_set_results: CHARACTER_SET,
  transaction_isolation: ISOLATION,
}

/** `select @@name` would fail for a variable that a server does not have; all take 4 ms longer. */
const VARIABLES = `show variables where variable_name in ('${Object.keys(EXPECTED).join("', '")}',
  'tx_isolation', 'hostname', 'port', 'version', 'auto_increment_increment', 'innodb_autoinc_lock_mode',
  'wsrep_on', 'server_uuid', 'server_uid', 'log_bin', 'binlog_format', 'innodb_flush_log_at_trx_commit', 'sync_binlog')`

const NAMES = `'${TABLES.join("', '")}'`

/**
 * The query for tables without transactions. MariaDB opens the tables that it names, and waits for their locks.
 * TiDB and Vitess report InnoDB too:
 * https://dev.mysql.com/doc/refman/9.4/en/information-schema-tables-table.html
 */
const WITHOUT_TRANSACTIONS = `select table_name as name from information_schema.tables
  where table_schema = database() and engine <> 'InnoDB'
    and (table_name in (${NAMES}) or table_name like 'kysely\\_migration%')`

/**
 * A trigger, also of the table of a view, may assign ids: the answer to an insert of several rows does not tell
 * the first one. MySQL shows triggers only to a user with the right TRIGGER.
 */
const TRIGGERS = `select trigger_name as name from information_schema.triggers
  where event_object_schema = database() and event_object_table in (${NAMES})
    and action_timing = 'BEFORE' and event_manipulation = 'INSERT'
  union select table_name from information_schema.views
  where table_schema = database() and table_name in (${NAMES})`

/**
 * Sets up a session, and returns the properties of its server. Throws for a session or a server that is
 * unusable, and warns of one that may lose what was acknowledged.
 */
async function setUp(connection: Connection, warn: (message: string) => void) {
  const query = async (sql: string) => (await connection.promise().query<RowDataPacket[]>(sql))[0]
  for (const sql of SET_UP) await query(sql)
  const rows = await query(VARIABLES)
  const variables = rows.map((row) => [row.Variable_name, String(row.Value)])
  const server = toServer(Object.fromEntries(variables), warn)
  const tables = await query(WITHOUT_TRANSACTIONS)
  // Only where ids may be consecutive. A proxy may refuse it.
  const grants = server.hasConsecutiveIds ? await query('show grants').catch(() => []) : []
  const name = RegExp.escape(`${connection.config.database}`).replaceAll('_', '\\\\?_')
  const right = new RegExp(`^GRANT .*(TRIGGER|ALL PRIVILEGES).* ON (\\*|\`${name}\`)\\.\\* `)
  const showsTriggers = grants.some((row) => right.test(String(Object.values(row))))
  const hasConsecutiveIds = showsTriggers && (await query(TRIGGERS)).length === 0
  if (tables.length === 0) return { ...server, hasConsecutiveIds }
  const remedy = tables.map(({ name }) => `alter table ${name} engine = InnoDB`).join('; ')
  throw new Error(`Tables must have the storage engine InnoDB: ${remedy}`)
}

/** Returns the properties of a server, from the variables; see `setUp`. */
export function toServer(
  { tx_isolation, ...variables }: Record<string, string | undefined>,
  warn: (message: string) => void,
) {
  // The name in MariaDB before 11.1.
  variables.transaction_isolation ??= tx_isolation
  for (const [name, expected] of Object.entries(EXPECTED)) {
    const value = variables[name] ?? 'unknown'
    if (value !== expected) {
      throw new Error(
        `The variables of the session are wrong (${name} is ${value}, not ${expected}): a proxy must pass SET statements on`,
      )
    }
  }
  const isLogged = variables.log_bin === 'ON'
  if (isLogged && variables.binlog_format === 'STATEMENT') {
    // The server rejects the writes of transactions with this isolation level.
    throw new Error('The server logs statements: binlog_format must be ROW or MIXED')
  }
  for (const name of ['innodb_flush_log_at_trx_commit', ...(isLogged ? ['sync_binlog'] : [])]) {
    const value = variables[name] ?? '1'
    if (value !== '1') {
      warn(
        `The database server has ${name} = ${value}, not 1: when it or its machine fails, it may lose the latest writes, though they were acknowledged`,
      )
    }
  }
  return {
    /** The name of the server: servers behind one load balancer use the same session numbers. */
    name: `${variables.hostname}:${variables.port} ${variables.server_uuid ?? variables.server_uid}`,
    /**
     * Whether the ids of one insert are consecutive. All lock modes guarantee it
     * (https://dev.mysql.com/doc/refman/9.4/en/innodb-auto-increment-handling.html). Galera and group
     * replication have larger increments; TiDB and Vitess assign ranges.
     */
    hasConsecutiveIds:
      variables.innodb_autoinc_lock_mode !== undefined &&
      variables.auto_increment_increment === '1' &&
      variables.wsrep_on !== 'ON' &&
      !/tidb|vitess/i.test(variables.version ?? 'vitess'),
  }
}
