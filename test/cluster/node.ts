/** A cluster of three database nodes on loopback, whichever kind it is: what the tests need of it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { freePort } from '../support/mysql.ts'

/** Milliseconds that a node has to become part of the cluster. */
const JOIN_TIMEOUT = 60_000

export interface Node {
  name: string
  /** A URL without a database: root may do everything. */
  url: string
  port: number
  /** Starts the node as a member of the running cluster, and waits until it is synced. */
  join(): Promise<void>
  /** Waits until the node is part of the cluster and has all that the others have. */
  synced(): Promise<void>
  /** Sends a signal to the process and its children; SIGKILL waits for its end. */
  kill(signal: NodeJS.Signals): Promise<void>
}

export interface Cluster {
  /** What CLUSTER in deploy/haproxy.cfg calls it. */
  kind: 'galera' | 'group-replication'
  nodes: [Node, Node, Node]
  /** After this statement a session reads all that any node had committed before. */
  catchUp: string
  /** Ends all nodes and removes their data. */
  remove(): Promise<void>
}

/** A new cluster, of the nodes that `start` adds to a list; their data is below a new folder. */
export async function newCluster(
  kind: Cluster['kind'],
  catchUp: string,
  start: (nodes: Node[], folder: string) => Promise<void>,
): Promise<Cluster> {
  const folder = mkdtempSync(path.join(tmpdir(), `petstore-${kind}-`))
  const nodes: Node[] = []
  const remove = async () => {
    await Promise.all(nodes.map(({ kill }) => kill('SIGKILL')))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await start(nodes, folder)
  } catch (error) {
    await remove()
    throw error
  }
  return { kind, catchUp, nodes: nodes as Cluster['nodes'], remove }
}

/** A node of `program` with its files below `folder`, which `run` starts, and again after its end. */
export async function newProcess(name: string, program: string, folder: string) {
  const port = await freePort()
  const log = path.join(folder, `${name}.log`)
  const data = path.join(folder, name)
  /** What a node needs to stand beside others on one machine; more options go behind these. */
  const options = [
    `--datadir=${data}`,
    `--socket=${path.join(folder, `${name}.socket`)}`,
    `--pid-file=${path.join(folder, `${name}.pid`)}`,
    `--log-error=${log}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--innodb-buffer-pool-size=32M',
  ]
  let child: ChildProcess | undefined
  const isRunning = () => child?.exitCode === null && child.signalCode === null
  const kill = async (signal: NodeJS.Signals) => {
    if (!child?.pid || !isRunning()) return
    const exited = once(child, 'exit')
    process.kill(-child.pid, signal) // with the programs that bring it its data
    if (signal === 'SIGKILL') await exited
  }
  /** Starts the program with these arguments; it ends with this process at the latest. */
  const run = (args: string[]) => {
    child = spawn(program, args, { stdio: 'ignore', detached: true })
    const last = () => void kill('SIGKILL')
    process.once('exit', last)
    child.once('exit', () => process.off('exit', last))
  }
  /** Waits until this is so. Throws with the end of the log when the process ends, or it takes too long. */
  const until = async (what: string, isSo: () => Promise<boolean>) => {
    const latest = Date.now() + JOIN_TIMEOUT
    while (!(await isSo())) {
      if (isRunning() && Date.now() < latest) await setTimeout(100)
      else throw new Error(`${name} is not ${what}:\n${readFileSync(log, 'utf8').slice(-5_000)}`)
    }
  }
  return { name, url: `mysql://root@127.0.0.1:${port}`, port, data, options, run, kill, until }
}

/** The first row that a node answers with; undefined when it does not answer. */
export async function ask(url: string, sql: string): Promise<RowDataPacket | undefined> {
  try {
    const connection = await createConnection({ uri: url, connectTimeout: 1_000 })
    try {
      const [rows] = await connection.query<RowDataPacket[]>(sql)
      return rows[0]
    } finally {
      connection.destroy()
    }
  } catch {
    return undefined
  }
}
