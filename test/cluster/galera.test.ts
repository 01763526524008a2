/** The service on a real Galera cluster, with failures of each part under load. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runServer } from '../support/process.ts'
import { type Deployment, deploy, expectGood, testFailover } from './deployment.ts'
import { startGalera } from './galera.ts'
import { startLoad } from './load.ts'
import type { Cluster } from './node.ts'

let galera: Cluster
let deployment: Deployment

beforeAll(async () => {
  galera = await startGalera()
  const haproxyUser = ["create user haproxy@'127.0.0.1'"]
  deployment = await deploy(galera, { haproxyUser, failover: 10_000 })
})

afterAll(async () => {
  await deployment?.stop()
  await galera?.remove()
})

test('instances start concurrently on different nodes, on an empty database', async () => {
  for (const name of ['empty1', 'empty2', 'empty3']) {
    await deployment.query(galera.nodes[0], `create database ${name}`)
    const servers = await Promise.all(
      galera.nodes.map(({ url }) => runServer({ DATABASE_URL: `${url}/${name}` })),
    )
    for (const { origin, child } of servers) {
      expect((await fetch(`${origin}/readyz`)).status).toBe(200)
      child.kill()
    }
  }
})

test('instances on different nodes agree on an Idempotency-Key', async () => {
  const servers = await Promise.all(
    galera.nodes.map(({ url }) => runServer({ DATABASE_URL: `${url}/petstore` })),
  )
  const create = async (origin: string, name: string) => {
    const response = await fetch(`${origin}/v1/pets`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${deployment.key}`,
        'content-type': 'application/json',
        'idempotency-key': `"${name}"`,
      },
      body: JSON.stringify({ name, categoryId: 1 }),
    })
    const { id } = (await response.json()) as { id?: number }
    return `${response.status} ${id}`
  }
  const seen: Record<string, number> = {}
  for (let round = 0; round < 50; round++) {
    const name = randomUUID()
    const answers = await Promise.all(servers.map(({ origin }) => create(origin, name)))
    const repeated = await create(servers[0]?.origin ?? '', name)
    const [{ id }, ...more] = await deployment.query(
      galera.nodes[2],
      `select id from petstore.pets where name = '${name}'`,
    )
    expect(more).toEqual([])
    expect(repeated).toBe(`201 ${id}`)
    for (const answer of answers) {
      expect([`201 ${id}`, '409 undefined']).toContain(answer)
      seen[answer.slice(0, 3)] = (seen[answer.slice(0, 3)] ?? 0) + 1
    }
  }
  console.log('concurrent requests with one Idempotency-Key on three nodes:', seen)
  for (const { child } of servers) child.kill()
})

testFailover(() => deployment)

test('the writer node is isolated from the others', async () => {
  const load = startLoad(deployment.haproxy.origin, deployment.key)
  await setTimeout(2_000)
  const writer = await deployment.writerNode()
  load.begin('node cut off')
  await deployment.query(writer, "set global wsrep_provider_options = 'gmcast.isolate=1'")
  await setTimeout(deployment.failover + 2_000)
  expect(await deployment.writerNode()).not.toBe(writer)
  load.begin('node connected')
  await deployment.query(writer, "set global wsrep_provider_options = 'gmcast.isolate=0'")
  await writer.synced()
  await setTimeout(3_000)
  await expectGood(deployment, load, ['node cut off'])
})

test('an instance is killed and comes back', async () => {
  const load = startLoad(deployment.haproxy.origin, deployment.key)
  await setTimeout(2_000)
  load.begin('instance killed')
  deployment.instances[0]?.child.kill('SIGKILL')
  await setTimeout(5_000)
  load.begin('instance back')
  await deployment.startInstance(0)
  await setTimeout(2_000)
  // HAProxy may close the connection of a creation without a key that was in flight: its outcome is
  // unknown, and a client must expect that on a reused connection anyway.
  await expectGood(
    deployment,
    load,
    ['instance killed'],
    ['createPet: UND_ERR_SOCKET', 'createPet: ECONNRESET'],
  )
})

test('a rolling restart loses no request', async () => {
  const load = startLoad(deployment.haproxy.origin, deployment.key)
  await setTimeout(1_000)
  for (const index of [0, 1]) {
    load.begin(`instance ${index + 1} restarted`)
    deployment.instances[index]?.child.kill('SIGTERM')
    expect(await deployment.instances[index]?.exited).toBe(0)
    await deployment.startInstance(index)
    await setTimeout(1_000)
  }
  await expectGood(deployment, load, [])
})
