/** The attributes of a MySQL server in the spans of its statements, and what its variables say. */
import { type CompiledQuery, SelectQueryNode } from 'kysely'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../../db/deadline.ts'
import { mysqlDialect } from '../../../db/engines/mysql.ts'
import { MysqlPool, type Pooled } from '../../../db/engines/mysql-pool.ts'
import { toServer } from '../../../db/engines/mysql-variables.ts'
import type { Statement } from '../../../db/statement.ts'
import type { Trace } from '../../../db/trace.ts'

test.each([
  ['mysql://user:secret@db.example/shop', 'db.example', 3306, 'shop'],
  ['mysql://user:secret@10.0.0.1:3307/pet%20shop', '10.0.0.1', 3307, 'pet shop'],
])('%s', async (url, address, port, name) => {
  // A connection that is set up, and answers each statement with no rows.
  const query = (_sql: string, _values: unknown[], done: (...result: unknown[]) => void) =>
    done(null, [], [])
  const pooled = { connection: { query }, server: {} } as unknown as Pooled
  const take = vi.spyOn(MysqlPool.prototype, 'take').mockResolvedValue(pooled)
  onTestFinished(() => take.mockRestore())
  const statement = vi.fn(() => () => {})
  const trace: Trace = { statement, joined: () => trace }
  const connection = await mysqlDialect(url, {}).createDriver().acquireConnection()
  const select: Statement = {
    sql: 'select 1',
    parameters: [],
    query: SelectQueryNode.create(),
    queryId: { queryId: '' },
    deadline: new Deadline(Number.POSITIVE_INFINITY, trace),
  }
  await connection.executeQuery(select as CompiledQuery)
  expect(statement).toHaveBeenCalledWith('select 1', {
    'db.system.name': 'mysql',
    'db.namespace': name,
    'server.address': address,
    'server.port': port,
  })
})

const single = {
  version: '11.8.3-MariaDB',
  auto_increment_increment: '1',
  innodb_autoinc_lock_mode: '1',
}
test.each<[what: string, variables: Record<string, string>, isSo: boolean]>([
  ['a single server', single, true],
  ['Galera is off', { ...single, wsrep_on: 'OFF' }, true],
  // Its increment becomes 2 when a node joins.
  ['Galera with one node', { ...single, wsrep_on: 'ON' }, false],
  ['group replication', { ...single, auto_increment_increment: '7' }, false],
  ['TiDB', { ...single, version: '8.0.11-TiDB-v8.5.0' }, false],
  ['Vitess', { ...single, version: '8.0.30-Vitess' }, false],
  ['an unknown server', {}, false],
])('%s: whether the ids of one insert are consecutive', (_, variables, isSo) => {
  const rows = Object.entries(variables).map(([Variable_name, Value]) => ({ Variable_name, Value }))
  expect(toServer(rows).hasConsecutiveIds).toBe(isSo)
})
