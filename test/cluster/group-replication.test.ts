/**
 * The service on a real MySQL cluster with Group Replication, as in InnoDB Cluster, with failures
 * of each part under load.
 */
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Deployment, deploy, expectGood, testFailover } from './deployment.ts'
import { findMysql, startGroupReplication } from './group-replication.ts'
import { startLoad } from './load.ts'
import type { Cluster, Node } from './node.ts'

const program = findMysql()
if (!program) console.log('Skipped: found no mysqld with the plugin group_replication')

describe.skipIf(!program)('on a mysqld with the plugin group_replication', () => {
  let group: Cluster
  let deployment: Deployment

  beforeAll(async () => {
    group = await startGroupReplication(program as string)
    const haproxyUser = [
      "create user haproxy@'127.0.0.1'",
      "grant select on performance_schema.replication_group_members to haproxy@'127.0.0.1'",
    ]
    deployment = await deploy(group, { haproxyUser, failover: 15_000 })
  })

  afterAll(async () => {
    await deployment?.stop()
    await group?.remove()
  })

  testFailover(() => deployment)

  test('the primary switches to another node', async () => {
    const load = startLoad(deployment.haproxy.origin, deployment.key)
    await setTimeout(2_000)
    const { others } = await roles()
    load.begin('primary switched')
    await deployment.query(others[0], 'select group_replication_set_as_primary(@@server_uuid)')
    await setTimeout(5_000)
    expect(await deployment.writerNode()).toBe(others[0])
    await expectGood(deployment, load, ['primary switched'])
  })

  test('the cluster loses its majority and recovers', async () => {
    const load = startLoad(deployment.haproxy.origin, deployment.key)
    await setTimeout(2_000)
    const { writer, others } = await roles()
    const known = deployment.haproxy.log.length
    load.begin('majority lost')
    for (const node of others) await node.kill('SIGSTOP')
    await setTimeout(10_000)
    expect(deployment.haproxy.log.slice(known)).toContain('proxy database has no server available')
    load.begin('majority back')
    for (const node of others) await node.kill('SIGCONT')
    await writer.synced()
    await setTimeout(5_000)
    await expectGood(deployment, load, ['majority lost', 'majority back'])
  })

  async function roles(): Promise<{ writer: Node; others: [Node, Node] }> {
    const writer = await deployment.writerNode()
    const others = group.nodes.filter((node) => node !== writer)
    return { writer, others: others as [Node, Node] }
  }
})
