/** What a session on a MySQL server must be, whatever the server's own settings are. */
import type { RowDataPacket } from 'mysql2'

/** What mysql2 writes statements in: the server must read them, and answer, in the same character set. */
export const COLLATION = 'utf8mb4_bin'
const CHARACTER_SET = 'utf8mb4'

/**
 * What the code counts on, with the words in which `show variables` says so:
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html
 * https://dev.mysql.com/doc/refman/9.4/en/innodb-parameters.html
 */
const SETTINGS: Record<string, string | bigint> = {
  // A statement outside a transaction is committed when it is answered, and a commit begins nothing.
  autocommit: 'ON',
  completion_type: 'NO_CHAIN',
  // mysql2 escapes values into the text of a statement with backslashes, which the mode
  // NO_BACKSLASH_ESCAPES would make unsafe; without a strict mode MySQL truncates in silence.
  sql_mode: 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
  // A row with a used Idempotency-Key is refused.
  unique_checks: 'ON',
  // Tables can roll back, those of Kysely's Migrator too.
  default_storage_engine: 'InnoDB',
  // A query without a limit gives all rows.
  sql_select_limit: 2n ** 64n - 1n,
  // A statement does not wait long for another's lock.
  innodb_lock_wait_timeout: 1n,
}

/**
 * No decision rests on what a transaction has read, so any level will do that shows no uncommitted
 * rows and takes no lock for reading. READ COMMITTED would do, but a server that logs statements
 * (`binlog_format`) refuses to write with it:
 * https://dev.mysql.com/doc/refman/9.4/en/innodb-transaction-isolation-levels.html
 */
const ISOLATION = 'REPEATABLE-READ'

const assignments = Object.entries(SETTINGS).map(
  ([name, value]) => `${name} = ${typeof value === 'string' ? `'${value}'` : value}`,
)

/**
 * Sets up a session. The isolation level has a statement of its own, since MariaDB before 11.1 and
 * MySQL have no common name for its variable.
 */
export const SET_UP = [
  `set session transaction isolation level ${ISOLATION.replace('-', ' ')}`,
  `set session ${assignments.join(', ')}, names ${CHARACTER_SET} collate ${COLLATION}`,
]

const EXPECTED = {
  ...SETTINGS,
  // With another than it takes it for, a server reads the end of a text elsewhere than mysql2 put it.
  character_set_client: CHARACTER_SET,
  character_set_connection: CHARACTER_SET,
  character_set_results: CHARACTER_SET,
  transaction_isolation: ISOLATION,
}

const SERVER = [
  'hostname',
  'port',
  'version',
  'auto_increment_increment',
  'innodb_autoinc_lock_mode',
  'wsrep_on',
]

// Some of them exist on some engines only, which `select @@name` would refuse.
const names = [...Object.keys(EXPECTED), 'tx_isolation', ...SERVER]
export const VARIABLES = `show variables where variable_name in ('${names.join("', '")}')`

export type Server = ReturnType<typeof toServer>

/** What the rows of VARIABLES tell of the server at the other end of a connection, and of the session. */
export function toServer(rows: unknown[]) {
  const given = new Map(
    // The columns that `show variables` has.
    (rows as RowDataPacket[]).map((row) => [row.Variable_name, String(row.Value)]),
  )
  // The name that MariaDB has until 11.1.
  const isolation = given.get('tx_isolation')
  if (isolation && !given.has('transaction_isolation'))
    given.set('transaction_isolation', isolation)
  const differences = Object.entries(EXPECTED)
    .filter(([name, value]) => given.get(name) !== String(value))
    .map(([name, value]) => `${name} is ${given.get(name) ?? 'unknown'}, not ${value}`)
  return {
    /** Why the session cannot be used, in words for the operator; undefined when it is as set up. */
    mistake:
      differences.length > 0
        ? `The session is not as it was set (${differences.join('; ')}): a proxy in between must pass SET on`
        : undefined,
    /** Tells servers apart: behind a load balancer two of them number their sessions alike. */
    name: `${given.get('hostname')}:${given.get('port')}`,
    /**
     * Whether the ids of one insert follow one another: https://dev.mysql.com/doc/refman/9.4/en/innodb-auto-increment-handling.html
     * promises it for all modes, Galera and group replication count by more than one, TiDB and
     * Vitess hand out ranges.
     */
    hasConsecutiveIds:
      ['0', '1', '2'].includes(given.get('innodb_autoinc_lock_mode') ?? '') &&
      given.get('auto_increment_increment') === '1' &&
      (given.get('wsrep_on') ?? 'OFF') === 'OFF' &&
      !/tidb|vitess/i.test(given.get('version') ?? 'vitess'),
  }
}
