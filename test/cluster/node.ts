/** A cluster of three database nodes on loopback, of either kind. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { freePort } from '../support/mysql.ts'

/** Milliseconds that a node may take to join the cluster. */
const JOIN_TIMEOUT = 60_000

export interface Node {
  name: string
  /** A URL without a database name, as root. */
  url: string
  port: number
  /** Starts the node as a member of the running cluster, and waits until it is synced. */
  join(): Promise<void>
  /** Waits until the node is part of the cluster and has applied all changes. */
  synced(): Promise<void>
  /** Sends a signal to the process and its children; SIGKILL waits for its end. */
  kill(signal: NodeJS.Signals): Promise<void>
}

export interface Cluster {
  /** The value of CLUSTER in deploy/haproxy.cfg. */
  kind: 'galera' | 'group-replication'
  nodes: [Node, Node, Node]
  /** After this statement a session reads everything that any node had committed before. */
  catchUp: string
  /** Kills all nodes and removes their data. */
  remove(): Promise<void>
}

/** Creates a cluster of the nodes that `start` adds to a list, with their data in a new folder. */
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

/** Prepares a node of `program` with its files in `folder`; `run` starts it, also repeatedly. */
export async function newProcess(name: string, program: string, folder: string) {
  const port = await freePort()
  const log = path.join(folder, `${name}.log`)
  const data = path.join(folder, name)
  /** Options that let several nodes run on one machine; further options follow them. */
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
    process.kill(-child.pid, signal) // the process group, with the programs that copy its data
    if (signal === 'SIGKILL') await exited
  }
  /** Starts the program with these arguments; it is killed when this process exits. */
  const run = (args: string[]) => {
    child = spawn(program, args, { stdio: 'ignore', detached: true })
    const last = () => void kill('SIGKILL')
    process.once('exit', last)
    child.once('exit', () => process.off('exit', last))
  }
  /** Waits until `isSo` is true. Throws the end of the log when the process ends, or on timeout. */
  const until = async (what: string, isSo: () => Promise<boolean>) => {
    const latest = Date.now() + JOIN_TIMEOUT
    while (!(await isSo())) {
      if (isRunning() && Date.now() < latest) await setTimeout(100)
      else throw new Error(`${name} is not ${what}:\n${readFileSync(log, 'utf8').slice(-5_000)}`)
    }
  }
  return { name, url: `mysql://root@127.0.0.1:${port}`, port, data, options, run, kill, until }
}

/** The first row of a query; undefined when the node does not answer. */
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
