/** What the variables of a MySQL server say. */
import { expect, test } from 'vitest'
import { exactly, hasTriggerRight, toServer } from '../../../../db/engines/mysql/set-up.ts'
import { TABLES as tables } from '../../../../db/migrations.ts'

type Variables = Record<string, string | undefined>

/** The variables of a session that is set up. */
const session = {
  autocommit: 'ON',
  sql_mode: 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
  character_set_client: 'utf8mb4',
  character_set_connection: 'utf8mb4',
  character_set_results: 'utf8mb4',
  transaction_isolation: 'READ-COMMITTED',
}
const toServerOf = (others: Variables) => toServer({ ...session, ...others }, () => {})

const single = {
  version: '11.8.3-MariaDB',
  auto_increment_increment: '1',
  innodb_autoinc_lock_mode: '1',
}
test.each<[what: string, variables: Variables, isSo: boolean]>([
  ['a single server', single, true],
  ['the other modes of locks', { ...single, innodb_autoinc_lock_mode: '0' }, true],
  ['the default of MySQL', { ...single, innodb_autoinc_lock_mode: '2' }, true],
  ['Galera is off', { ...single, wsrep_on: 'OFF' }, true],
  // Its increment becomes 2 when a node joins.
  ['Galera with one node', { ...single, wsrep_on: 'ON' }, false],
  ['group replication', { ...single, auto_increment_increment: '7' }, false],
  ['TiDB', { ...single, version: '8.0.11-TiDB-v8.5.0' }, false],
  ['Vitess', { ...single, version: '8.0.30-Vitess' }, false],
  ['an unknown server', {}, false],
])('%s: whether the ids of one insert are consecutive', (_, variables, isSo) => {
  expect(toServerOf(variables).mayBatch).toBe(isSo)
})

test('servers with one host name have names of their own', () => {
  const names = [
    { server_uuid: 'a' },
    { server_uuid: 'b' },
    { server_uid: '1' },
    { server_uid: '2' },
  ].map((variables) => toServerOf({ hostname: 'mysql-0', port: '3306', ...variables }).name)
  expect(new Set(names).size).toBe(4)
})

const ofMariadb = { transaction_isolation: undefined, tx_isolation: 'READ-COMMITTED' }
const wrong = (difference: string) =>
  `The variables of the session are wrong (${difference}): a proxy must pass SET statements on`

test.each<[what: string, others: Variables, mistake?: string]>([
  ['a session that is set up', {}],
  ['MariaDB before 11.1', ofMariadb],
  ['MySQL 5.7, which has both names', { tx_isolation: 'REPEATABLE-READ' }],
  ['a log of rows', { log_bin: 'ON', binlog_format: 'ROW' }],
  ['a format of a log that is off', { log_bin: 'OFF', binlog_format: 'STATEMENT' }],
  [
    'a log of statements',
    { log_bin: 'ON', binlog_format: 'STATEMENT' },
    'The server logs statements: binlog_format must be ROW or MIXED',
  ],
  [
    'a variable that is missing',
    { sql_mode: undefined },
    wrong(`sql_mode is unknown, not ${session.sql_mode}`),
  ],
  [
    'MariaDB with another level',
    { ...ofMariadb, tx_isolation: 'REPEATABLE-READ' },
    wrong('transaction_isolation is REPEATABLE-READ, not READ-COMMITTED'),
  ],
])('%s: why the session is unusable', (_, others, mistake) => {
  if (mistake) expect(() => toServerOf(others)).toThrow(mistake)
  else toServerOf(others)
})

const to = 'TO `shop`@`%`'
const all = (place: string) => `GRANT ALL PRIVILEGES ON ${place} ${to}`
const some = (place: string) => `GRANT SELECT, INSERT, UPDATE ON ${place} ${to}`
const trigger = (place: string) =>
  `GRANT SELECT, INSERT, TRIGGER ON ${place} ${to} WITH GRANT OPTION`
const usage = `GRANT USAGE ON *.* ${to}`

test.each<[what: string, lines: string[], isSo: boolean]>([
  ['all rights everywhere', [all('*.*')], true],
  ['TRIGGER everywhere', [trigger('*.*')], true],
  ['all rights everywhere, and others for another database', [all('*.*'), some('`shop`.*')], true],
  ['all rights everywhere, and others here', [all('*.*'), some('`pet\\_store`.*')], true],
  ['all rights for the database', [usage, all('`pet_store`.*')], true],
  ['a name with an escaped underscore', [usage, all('`pet\\_store`.*')], true],
  ['a pattern', [usage, all('`pet%`.*')], false],
  ['another database', [usage, all('`shop`.*')], false],
  ['the database, and others', [usage, all('`pet_store`.*'), all('`shop`.*')], true],
  ['a pattern that has less', [usage, all('`pet_store`.*'), some('`pet\\_stor_`.*')], false],
  ['the exact name, and a pattern', [usage, all('`pet\\_store`.*'), some('`pet%`.*')], true],
  ['the exact name has less', [usage, all('`pet_store`.*'), some('`pet\\_store`.*')], false],
  ['each table', [usage, ...tables.map((name) => trigger(`\`pet_store\`.\`${name}\``))], true],
  [
    'each table, as MySQL writes it',
    [usage, ...tables.map((name) => trigger(`TABLE \`pet_store\`.\`${name}\``))],
    true,
  ],
  [
    'all tables but one',
    [usage, ...tables.slice(1).map((name) => all(`\`pet_store\`.\`${name}\``))],
    false,
  ],
  [
    'each table of another database',
    [usage, ...tables.map((name) => all(`\`pet%\`.\`${name}\``))],
    false,
  ],
  ['a column of that name', [usage, `GRANT SELECT (\`TRIGGER\`) ON \`pet_store\`.* ${to}`], false],
  ['other rights everywhere', [some('*.*')], false],
  ['other rights everywhere, and TRIGGER here', [some('*.*'), trigger('`pet_store`.*')], true],
  [
    'TRIGGER revoked here',
    [trigger('*.*'), 'REVOKE TRIGGER ON `pet_store`.* FROM `shop`@`%`'],
    false,
  ],
  [
    'rights revoked on `mysql`, as on managed servers',
    [all('*.*'), 'REVOKE TRIGGER, DROP ON `mysql`.* FROM `shop`@`%`'],
    false,
  ],
  [
    'the same, and TRIGGER here',
    [all('*.*'), 'REVOKE TRIGGER, DROP ON `mysql`.* FROM `shop`@`%`', trigger('`pet\\_store`.*')],
    true,
  ],
  [
    'a role, and dynamic rights',
    [usage, `GRANT BACKUP_ADMIN ON *.* ${to}`, 'GRANT `app`@`%` TO `shop`@`%`'],
    false,
  ],
  ['nothing: a proxy has refused the question', [], false],
])('%s: whether the server shows all triggers', (_, lines, isSo) => {
  expect(hasTriggerRight(lines, 'pet_store', exactly('pet_store', true))).toBe(isSo)
})

test('a name with a backslash is no pattern that another database has', () => {
  const name = 'pet\\_shop'
  const exact = exactly(name, true)
  expect(hasTriggerRight([usage, all('`pet\\_shop`.*')], name, exact), 'of pet_shop').toBe(false)
  expect(hasTriggerRight([usage, all('`pet\\\\\\_shop`.*')], name, exact)).toBe(true)
  expect(hasTriggerRight([usage, all('`pet\\_shop`.*')], name, exactly(name, false))).toBe(true)
})

test('a server with partial_revokes has no patterns: an escaped name is that of another database', () => {
  const exact = exactly('pet_store', false)
  const revoked = [all('*.*'), 'REVOKE TRIGGER ON `pet_store`.* FROM `shop`@`%`']
  expect(hasTriggerRight([...revoked, trigger('`pet\\_store`.*')], 'pet_store', exact)).toBe(false)
  expect(hasTriggerRight([...revoked, trigger('`pet_store`.*')], 'pet_store', exact)).toBe(true)
})

test.each<[variables: Variables, warned: string[]]>([
  [{ innodb_flush_log_at_trx_commit: '1', log_bin: 'ON', sync_binlog: '1' }, []],
  // Of MariaDB alone: as 1, and with a wait for the disk at the prepare of the binary log, too.
  [{ innodb_flush_log_at_trx_commit: '3', log_bin: 'OFF', sync_binlog: '0' }, []],
  [{ innodb_flush_log_at_trx_commit: '0' }, ['innodb_flush_log_at_trx_commit = 0, not 1']],
  [{ innodb_flush_log_at_trx_commit: '2' }, ['innodb_flush_log_at_trx_commit = 2, not 1']],
  [{ log_bin: 'ON', sync_binlog: '3' }, ['sync_binlog = 3, not 1']],
])('%j: what is warned of', (variables, warned) => {
  const warnings: string[] = []
  toServer({ ...session, ...variables }, (warning) => warnings.push(warning))
  expect(warnings).toEqual(warned.map((setting) => expect.stringContaining(`has ${setting}:`)))
})
