/** Sets up a session with a MySQL server, and checks it: its settings each time, what is true of a server once a minute. */
import type { Connection, ResultSetHeader, RowDataPacket } from 'mysql2'
import { TABLES } from '../../migrations.ts'

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

/** The setting of the seconds that a statement waits for the lock of a table: as long as a call may wait for the database. */
export const TABLE_LOCK = 'lock_wait_timeout = 30'

/**
 * The statements that set up a session, with what the code depends on:
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html
 * https://dev.mysql.com/doc/refman/9.4/en/innodb-parameters.html
 */
// The variables have different names in MySQL and in MariaDB before 11.1.
const SET_TRANSACTIONS = `set session transaction isolation level ${ISOLATION.replace('-', ' ')}, read write`
const SET_VARIABLES = `set session ${[
  // The server commits a statement outside a transaction at once. A commit begins no transaction.
  "autocommit = 'ON', completion_type = 'NO_CHAIN'",
  `sql_mode = '${SQL_MODE}'`,
  // The server rejects a row with a used Idempotency-Key.
  "unique_checks = 'ON'",
  "default_storage_engine = 'InnoDB'",
  "sql_quote_show_create = 'ON'", // `show grants` is read
  "sql_safe_updates = 'OFF'", // a migration updates all rows
  "lc_messages = 'en_US'", // withoutValues() knows the texts of errors in English
  // A query without a limit returns all rows, however many it reads.
  "sql_select_limit = 18446744073709551615, sql_big_selects = 'ON'",
  // Seconds that a statement waits for the lock of a row.
  'innodb_lock_wait_timeout = 1',
  TABLE_LOCK,
  // Seconds after which the server ends an idle session: longer than the pool keeps one. If a process and
  // its connection are lost at once, its transaction would otherwise hold its locks for eight hours.
  // MariaDB may end a list at the limit of a statement as if it were empty. MySQL reads a comment here.
  'wait_timeout = 60 /*M! , max_statement_time = 0 */',
  `names ${CHARACTER_SET} collate ${COLLATION}`,
].join(', ')}`

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
const WITHOUT_TRANSACTIONS = `select 'table' as kind, table_name as name from information_schema.tables
  where table_schema = database() and engine <> 'InnoDB'
    and (table_name in (${NAMES}) or table_name like 'kysely\\_migration%')`

/**
 * A trigger, also of the table of a view, may assign ids: the answer to an insert of several rows does not tell
 * the first one. MySQL shows triggers only to a user with the right TRIGGER.
 */
const TRIGGERS = `select 'trigger', trigger_name from information_schema.triggers
  where event_object_schema = database() and event_object_table in (${NAMES})
    and action_timing = 'BEFORE' and event_manipulation = 'INSERT'
  union all select 'trigger', table_name from information_schema.views
  where table_schema = database() and table_name in (${NAMES})`

/** The session, or its server, is unusable for a reason that an operator must mend. */
export class UnfitSessionError extends Error {
  /** The name of the server, if it is unusable for all its sessions. */
  readonly server: string | undefined
  constructor(message: string, server?: string) {
    super(message)
    this.server = server
  }
}

/** A server, as its sessions know it. They share the object, so that all learn what one of them finds. */
export interface Server {
  /** Servers behind one load balancer use the same session numbers. */
  readonly name: string
  /** When it was last checked (performance.now()), and the check that runs. */
  checkedAt: number
  checking: Promise<void> | undefined
  /** Whether no trigger assigns ids. */
  hasNoTriggers: boolean
}

/** The servers, by their names. */
export type KnownServers = Map<string, Server>

/** Milliseconds for which a server is not checked again. */
const CHECK_LIFETIME = 60_000

/** The flag of an answer that says that a transaction is open: https://dev.mysql.com/doc/dev/mysql-server/9.4.0/mysql__com_8h.html */
const IN_TRANSACTION = 1

type Warn = (message: string) => void

/**
 * Sets up a session, and returns its server, and whether it `mayBatch`: see `toServer`. Each session is set up and
 * read back; what is true of a server (tables, rights, triggers) is asked by the first session that opens, and
 * by one a minute later. Throws UnfitSessionError for a session or a server that is unusable, and warns of one
 * that may lose what was acknowledged, or that is slow without need.
 */
export async function setUp(connection: Connection, known: KnownServers, warn: Warn) {
  const session = connection.promise()
  const [{ serverStatus }] = await session.query<ResultSetHeader>(SET_TRANSACTIONS)
  // Of a transaction that init_connect or a proxy has left open.
  if (serverStatus & IN_TRANSACTION) await session.query('rollback')
  await session.query(SET_VARIABLES)
  const [rows] = await session.query<RowDataPacket[]>(VARIABLES)
  const variables = rows.map((row) => [row.Variable_name, String(row.Value)])
  const { name, mayBatch } = toServer(Object.fromEntries(variables), warn)
  const server = known.get(name) ?? newServer(name)
  known.set(name, server)
  while (performance.now() - server.checkedAt > CHECK_LIFETIME) {
    const isOther = server.checking !== undefined
    server.checking ??= check(connection, server, mayBatch, warn).finally(() => {
      server.checking = undefined
    })
    await server.checking.catch((error) => {
      // If the session that checks is lost, the next one does.
      if (!isOther || error instanceof UnfitSessionError) throw error
    })
  }
  return { server, mayBatch }
}

const newServer = (name: string): Server => ({
  name,
  checkedAt: Number.NEGATIVE_INFINITY,
  checking: undefined,
  hasNoTriggers: false,
})

/** Checks what is true of a server. Throws UnfitSessionError for tables that lose what was acknowledged. */
async function check(connection: Connection, server: Server, mayBatch: boolean, warn: Warn) {
  const query = async (sql: string) => (await connection.promise().query<RowDataPacket[]>(sql))[0]
  const found = await query(
    mayBatch ? `${WITHOUT_TRANSACTIONS} union all ${TRIGGERS}` : WITHOUT_TRANSACTIONS,
  )
  const tables = found.filter(({ kind }) => kind === 'table')
  if (tables.length > 0) {
    server.checkedAt = Number.NEGATIVE_INFINITY
    const remedy = tables.map(({ name }) => `alter table ${name} engine = InnoDB`).join('; ')
    throw new UnfitSessionError(
      `Tables must have the storage engine InnoDB: ${remedy}`,
      server.name,
    )
  }
  server.hasNoTriggers =
    mayBatch &&
    found.length === 0 &&
    (await showsTriggers(query, `${connection.config.database}`, warn))
  server.checkedAt = performance.now()
}

/** Whether the server shows the triggers of the database to the user. Warns if it may hide some. */
async function showsTriggers(
  query: (sql: string) => Promise<RowDataPacket[]>,
  database: string,
  warn: Warn,
): Promise<boolean> {
  const rows = await query('show grants').catch((error) => {
    if (error.fatal) throw error
    return [] // a proxy has refused it
  })
  const lines = rows.map((row) => String(Object.values(row)[0]))
  const [partialRevokes] = await query("show variables like 'partial_revokes'")
  const exact = exactly(database, partialRevokes?.Value !== 'ON')
  const isShown = hasTriggerRight(lines, database, exact)
  if (!isShown) {
    warn(
      `The database server may hide triggers from the user, so each creation is a statement of its own, at half the speed: grant trigger on ${exact} to the user`,
    )
  }
  return isShown
}

const quoted = (name: string) => `\`${name.replaceAll('`', '``')}\``

/**
 * Returns all tables of one database, as a grant names them. In a name, `_` and `%` are wildcards and `\` escapes them,
 * unless the server has `partial_revokes` (https://dev.mysql.com/doc/refman/9.4/en/grant.html).
 */
export const exactly = (database: string, hasWildcards: boolean): string =>
  `${quoted(hasWildcards ? database.replace(/[_%\\]/g, String.raw`\$&`) : database)}.*`

/**
 * Whether the lines of `show grants` certainly give the right TRIGGER for all tables of the service: everywhere, and
 * revoked nowhere; for `exact`ly this database; for a name with wildcards that is that of the database, unless another
 * line gives other rights for a database or a pattern; or for each table.
 */
export function hasTriggerRight(lines: string[], database: string, exact: string): boolean {
  const hasRight = (line: string) => /^GRANT (?:ALL PRIVILEGES|(?:.+, )?TRIGGER)\b/.test(line)
  const isGiven = (place: string) =>
    lines.some((line) => hasRight(line) && line.includes(` ${place} TO `))
  const isRevoked = lines.some((line) => line.startsWith('REVOKE'))
  const isPlain =
    !database.includes('\\') && lines.every((line) => hasRight(line) || !/`\.\* TO /.test(line))
  return (
    (isGiven('*.*') && !isRevoked) ||
    isGiven(exact) ||
    (isGiven(`${quoted(database)}.*`) && isPlain) ||
    TABLES.every((table) => isGiven(`${quoted(database)}.${quoted(table)}`))
  )
}

/** Returns the properties of a server, from the variables; see `setUp`. */
export function toServer(
  { tx_isolation, ...variables }: Record<string, string | undefined>,
  warn: Warn,
) {
  // The name in MariaDB before 11.1.
  variables.transaction_isolation ??= tx_isolation
  for (const [name, expected] of Object.entries(EXPECTED)) {
    const value = variables[name] ?? 'unknown'
    if (value !== expected) {
      throw new UnfitSessionError(
        `The variables of the session are wrong (${name} is ${value}, not ${expected}): a proxy must pass SET statements on`,
      )
    }
  }
  const isLogged = variables.log_bin === 'ON'
  if (isLogged && variables.binlog_format === 'STATEMENT') {
    // The server rejects the writes of transactions with this isolation level.
    throw new UnfitSessionError('The server logs statements: binlog_format must be ROW or MIXED')
  }
  for (const name of ['innodb_flush_log_at_trx_commit', ...(isLogged ? ['sync_binlog'] : [])]) {
    const value = variables[name] ?? '1'
    // MariaDB's 3 of innodb_flush_log_at_trx_commit waits for the disk as often as 1, and more.
    if (value !== '1' && !(value === '3' && name.startsWith('innodb'))) {
      warn(
        `The database server has ${name} = ${value}, not 1: when it or its machine fails, it may lose the latest writes, though they were acknowledged`,
      )
    }
  }
  return {
    name: `${variables.hostname}:${variables.port} ${variables.server_uuid ?? variables.server_uid}`,
    /**
     * Whether the server gives the rows of an insert consecutive ids, without triggers. All lock modes guarantee it
     * (https://dev.mysql.com/doc/refman/9.4/en/innodb-auto-increment-handling.html). Galera and group
     * replication have larger increments; TiDB and Vitess assign ranges.
     */
    mayBatch:
      variables.innodb_autoinc_lock_mode !== undefined &&
      variables.auto_increment_increment === '1' &&
      variables.wsrep_on !== 'ON' &&
      !/tidb|vitess/i.test(variables.version ?? 'vitess'),
  }
}
