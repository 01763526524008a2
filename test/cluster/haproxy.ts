/** A real HAProxy on loopback, configured with deploy/haproxy.cfg. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { userInfo } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../support/mysql.ts'
import type { Cluster, Node } from './node.ts'

const configuration = path.join(import.meta.dirname, '../../deploy/haproxy.cfg')

export interface Haproxy {
  /** The origin of the instances behind HAProxy. */
  origin: string
  /** The port of TLS, where there is a certificate. */
  tlsPort: number
  /** The URL of the database server behind HAProxy, without a database name. */
  databaseUrl: string
  /** The output so far. */
  readonly log: string
  stop(): Promise<void>
}

/**
 * Starts HAProxy in front of instances on these ports, and in front of the nodes of a cluster. With a
 * `certificate`, the path of its file, it listens on all addresses.
 */
export async function startHaproxy(
  apps: readonly number[],
  { kind, nodes }: Pick<Cluster, 'kind'> & { nodes: readonly Pick<Node, 'port'>[] },
  certificate = '',
): Promise<Haproxy> {
  const front = await freePort()
  const tlsPort = await freePort()
  const databaseFront = await freePort()
  const local = (port: number | undefined) => `127.0.0.1:${port}`
  const child = spawn('haproxy', ['-db', '-f', configuration], {
    env: {
      PATH: `${process.env.PATH}:/usr/sbin`,
      USER_NAME: userInfo().username,
      GROUP_NAME: execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim(),
      CLUSTER: kind,
      LISTEN: certificate ? `:::${front}` : local(front),
      LISTEN_TLS: `:::${tlsPort}`,
      CERTIFICATE: certificate,
      DATABASE_LISTEN: local(databaseFront),
      APP1: local(apps[0]),
      APP2: local(apps[1]),
      DB1: local(nodes[0]?.port),
      DB2: local(nodes[1]?.port),
      DB3: local(nodes[2]?.port),
    },
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit')
  let log = ''
  const haproxy: Haproxy = {
    origin: `http://${local(front)}`,
    tlsPort,
    databaseUrl: `mysql://root@${local(databaseFront)}`,
    get log() {
      return log
    },
    async stop() {
      process.off('exit', kill)
      kill()
      await exited
    },
  }
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
  }
  while (!log.includes('app1 is DOWN') || !log.includes('app2 is DOWN')) {
    if (child.exitCode !== null) throw new Error(`HAProxy did not start:\n${log}`)
    await setTimeout(50)
  }
  return haproxy
}
