/**
 * The service as docs/scaling.md describes it, on real servers: two instances behind HAProxy, on
 * a cluster of three database nodes behind HAProxy.
 */
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { freePort } from '../support/mysql.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { keys } from '../support/service.ts'
import { type Haproxy, startHaproxy } from './haproxy.ts'
import { type Load, type Phase, startLoad } from './load.ts'
import type { Cluster, Node } from './node.ts'

process.setMaxListeners(30) // each server adds listeners

export interface Deployment {
  cluster: Cluster
  haproxy: Haproxy
  instances: ServerProgram[]
  /** An API key. */
  key: string
  /** Milliseconds that a fail-over may take. */
  failover: number
  /** Starts an instance, and waits until HAProxy sends it requests. */
  startInstance(index: number): Promise<void>
  /** The node that HAProxy forwards the service to. */
  writerNode(): Promise<Node>
  /** Queries a node after it has applied everything that any node had committed before. */
  query(node: Node, sql: string): Promise<[RowDataPacket, ...RowDataPacket[]]>
  /** Stops everything except the cluster. */
  stop(): Promise<void>
}

/** Starts two instances and HAProxy on a new cluster; `haproxyUser` creates the user of HAProxy. */
export async function deploy(
  cluster: Cluster,
  { haproxyUser, failover }: { haproxyUser: string[]; failover: number },
): Promise<Deployment> {
  const query: Deployment['query'] = async (node, sql) => {
    const connection = await createConnection(node.url)
    try {
      await connection.query(cluster.catchUp)
      return (await connection.query<[RowDataPacket]>(sql))[0]
    } finally {
      connection.destroy()
    }
  }
  for (const sql of [...haproxyUser, 'create database petstore']) await query(cluster.nodes[0], sql)
  const ports = [await freePort(), await freePort()]
  const haproxy = await startHaproxy(ports, cluster)
  const databaseUrl = `${haproxy.databaseUrl}/petstore`
  const instances: ServerProgram[] = []
  const deployment: Deployment = {
    cluster,
    haproxy,
    instances,
    key: (await keys.create(databaseUrl, 'test')).key,
    failover,
    query,
    async startInstance(index) {
      const known = haproxy.log.length
      instances[index] = await runServer({
        DATABASE_URL: databaseUrl,
        PORT: String(ports[index]),
        TRUST_PROXY: '1',
        SHUTDOWN_DELAY: '4s',
      })
      while (!haproxy.log.slice(known).includes(`app${index + 1} is UP`)) await setTimeout(50)
    },
    async writerNode() {
      const connection = await createConnection(databaseUrl)
      const [rows] = await connection.query<RowDataPacket[]>('select @@port as port')
      connection.destroy()
      return cluster.nodes.find(({ port }) => port === rows[0]?.port) as Node
    },
    async stop() {
      for (const { child } of instances) child.kill('SIGKILL')
      await haproxy.stop()
    },
  }
  await Promise.all([0, 1].map(deployment.startInstance))
  return deployment
}

const failures = [
  // First, so that db1 is the node that wakes up: HAProxy prefers it, except for its stick table.
  {
    title: 'freezes and wakes up',
    signal: 'SIGSTOP',
    failed: 'node frozen',
    returned: 'node awake',
    async back(node: Node) {
      await node.kill('SIGCONT')
      await node.synced()
    },
  },
  {
    title: 'is killed and comes back',
    signal: 'SIGKILL',
    failed: 'node killed',
    returned: 'node back',
    back: (node: Node) => node.join(),
  },
] as const

/** The tests for any cluster: the writer node fails under load. */
export function testFailover(deployed: () => Deployment): void {
  test.for(failures)('the writer node $title', async (failure) => {
    const deployment = deployed()
    const { haproxy, key, failover, writerNode } = deployment
    const load = startLoad(haproxy.origin, key)
    await setTimeout(2_000)
    const writer = await writerNode()
    load.begin(failure.failed)
    await writer.kill(failure.signal)
    await setTimeout(failover + 2_000)
    const successor = await writerNode()
    expect(successor).not.toBe(writer)
    load.begin(failure.returned)
    const writers = await writersUntil(deployment, failure.back(writer))
    expect(writers, 'no second fail-over').toEqual([successor.name])
    await expectGood(deployment, load, [failure.failed])
  })
}

/** The names of the nodes that HAProxy forwards to, until some seconds after `event`. */
async function writersUntil({ writerNode }: Deployment, event: Promise<void>): Promise<string[]> {
  const writers = new Set<string>()
  let isOver = false
  const end = event.then(() => setTimeout(3_000)).finally(() => (isOver = true))
  while (!isOver) {
    writers.add((await writerNode()).name)
    await setTimeout(200)
  }
  await end
  return [...writers]
}

/**
 * Stops the load and prints its phases. Checks that only the expected requests failed, and that
 * every node has each acknowledged pet, and no pet twice.
 */
export async function expectGood(
  { cluster, failover, query }: Deployment,
  load: Load,
  failing: string[],
  allowed: string[] = [],
): Promise<void> {
  const phases = await load.stop()
  for (const phase of phases) console.log(sentence(phase))
  for (const { name, failures, lastFailure } of phases) {
    const isExpected = (failure: string) =>
      failing.includes(name) && (failure.endsWith(': 503') || allowed.includes(failure))
    expect(
      Object.keys(failures).filter((failure) => !isExpected(failure)),
      name,
    ).toEqual([])
    expect(lastFailure, name).toBeLessThan(failover)
  }
  for (const node of cluster.nodes) {
    await node.synced()
    const rows = await query(node, 'select id, name from petstore.pets')
    const pets = new Map(rows.map(({ id, name }) => [id, name]))
    const lost = [...load.acknowledged].filter(([id, name]) => pets.get(id) !== name)
    expect(lost, `lost on ${node.name}`).toEqual([])
    expect(new Set(pets.values()).size, `duplicated on ${node.name}`).toBe(pets.size)
  }
}

/** Returns a line with the figures of a phase. */
export function sentence(phase: Phase): string {
  const { name, requests, slowest, failures, lastFailure, withoutWrites } = phase
  const count = Object.values(failures).reduce((sum, some) => sum + some, 0)
  const last = count === 0 ? '' : `, the last after ${(lastFailure / 1000).toFixed(1)} s`
  const kinds = Object.entries(failures).map(([kind, some]) => `; ${kind} (${some})`)
  return `${name}: ${requests} requests, the slowest ${Math.round(slowest)} ms, at most ${withoutWrites} ms without a creation; ${count} errors${last}${kinds.join('')}`
}
