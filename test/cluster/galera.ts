/** A real three-node MariaDB Galera cluster on loopback, configured with deploy/galera.cnf. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { freePort } from '../support/mysql.ts'

const PROGRAM = '/usr/sbin/mariadbd'
const deployed = path.join(import.meta.dirname, '../../deploy/galera.cnf')

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
  /** Sends a signal to the process; SIGKILL waits for its end. */
  kill(signal: NodeJS.Signals): Promise<void>
}

export interface Galera {
  nodes: [Node, Node, Node]
  /** Ends all nodes and removes their data. */
  remove(): Promise<void>
}

/** A new cluster of three nodes with new data. */
export async function startGalera(): Promise<Galera> {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-galera-'))
  const configuration = path.join(folder, 'galera.cnf')
  copyFileSync(deployed, configuration) // where the servers' user may read it
  const address: string[] = []
  for (const _ of names) address.push(`127.0.0.1:${await freePort()}`)
  const nodes: Node[] = []
  const galera = {
    nodes: nodes as Galera['nodes'],
    async remove() {
      await Promise.all(nodes.map(({ kill }) => kill('SIGKILL')))
      rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    for (const [index, name] of names.entries()) {
      const { node, start } = await newNode(name, folder, address, index)
      nodes.push(node)
      await (index === 0 ? start(['--wsrep-new-cluster']) : node.join())
    }
  } catch (error) {
    await galera.remove()
    throw error
  }
  return galera
}

const names = ['db1', 'db2', 'db3']

async function newNode(name: string, folder: string, group: string[], index: number) {
  const data = path.join(folder, name)
  const log = path.join(folder, `${name}.log`)
  const port = await freePort()
  const url = `mysql://root@127.0.0.1:${port}`
  const provider = [
    readOption('wsrep_provider_options'),
    `gmcast.listen_addr=tcp://${group[index]}`,
    `ist.recv_addr=127.0.0.1:${await freePort()}`,
    'gcache.size=32M',
  ]
  const options = [
    `--defaults-file=${path.join(folder, 'galera.cnf')}`,
    `--datadir=${data}`,
    `--socket=${path.join(folder, `${name}.socket`)}`,
    `--pid-file=${path.join(folder, `${name}.pid`)}`,
    `--log-error=${log}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--innodb-buffer-pool-size=32M',
    '--performance-schema=OFF',
    `--wsrep-node-name=${name}`,
    `--wsrep-node-address=${group[index]}`,
    `--wsrep-node-incoming-address=127.0.0.1:${port}`,
    `--wsrep-cluster-address=gcomm://${group.join()}`,
    `--wsrep-sst-receive-address=127.0.0.1:${await freePort()}`,
    `--wsrep-sst-donor=${name === 'db3' ? 'db2' : 'db3'},`,
    `--wsrep-provider-options=${provider.join(';')}`,
  ]
  mkdirSync(data)
  if (index === 0) {
    const flags = ['--auth-root-authentication-method=normal', '--skip-test-db']
    const install = ['--no-defaults', ...flags, `--datadir=${data}`]
    execFileSync('mariadb-install-db', install, { stdio: 'pipe' })
  }
  // rsync, which brings a new node its data, cannot write as root.
  if (process.getuid?.() === 0) {
    execFileSync('chown', ['-R', 'mysql', folder])
    options.push('--user=mysql')
  }

  let child: ChildProcess | undefined
  const isRunning = () => child?.exitCode === null && child.signalCode === null
  const kill = async (signal: NodeJS.Signals) => {
    if (!child?.pid || !isRunning()) return
    const exited = once(child, 'exit')
    process.kill(-child.pid, signal) // with the programs that bring it its data
    if (signal === 'SIGKILL') await exited
  }
  const synced = async () => {
    const latest = Date.now() + JOIN_TIMEOUT
    while ((await status(url, 'wsrep_local_state_comment')) !== 'Synced') {
      if (isRunning() && Date.now() < latest) await setTimeout(100)
      else throw new Error(`${name} is not synced:\n${readFileSync(log, 'utf8').slice(-5_000)}`)
    }
  }
  const start = async (flags: string[]) => {
    child = spawn(PROGRAM, [...options, ...flags], { stdio: 'ignore', detached: true })
    const last = () => void kill('SIGKILL')
    process.once('exit', last)
    child.once('exit', () => process.off('exit', last))
    await synced()
  }
  const join = () => start([`--wsrep-start-position=${recovered(options)}`])
  const node: Node = { name, url, port, join, synced, kill }
  return { node, start }
}

/** Where a node stood when it ended, as systemd's unit asks too: what it lacks is enough then. */
function recovered(options: string[]): string {
  const toStderr = options.filter((option) => !option.startsWith('--log-error'))
  const { stderr } = spawnSync(PROGRAM, [...toStderr, '--wsrep-recover'], { encoding: 'utf8' })
  const position = /Recovered position: *(\S+)/.exec(stderr)?.[1]
  return position ?? '00000000-0000-0000-0000-000000000000:-1'
}

function readOption(name: string): string {
  const line = new RegExp(`^${name} = "?(.*?)"?$`, 'm').exec(readFileSync(deployed, 'utf8'))
  return line?.[1] ?? ''
}

async function status(url: string, name: string): Promise<string | undefined> {
  try {
    const connection = await createConnection({ uri: url, connectTimeout: 1_000 })
    try {
      const [rows] = await connection.query<RowDataPacket[]>(`show status like '${name}'`)
      return rows[0]?.Value
    } finally {
      connection.destroy()
    }
  } catch {
    return undefined
  }
}
