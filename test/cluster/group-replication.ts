/**
 * A real three-node MySQL cluster with Group Replication on loopback, configured with
 * deploy/group-replication.cnf and deploy/group-replication.sql.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { createConnection } from 'mysql2/promise'
import { freePort, ROOT_BY_ADDRESS } from '../support/mysql.ts'
import { ask, type Cluster, type Node, newCluster, newProcess } from './node.ts'

const folderOfDeployed = path.join(import.meta.dirname, '../../deploy')
const configuration = path.join(folderOfDeployed, 'group-replication.cnf')
const setup = readFileSync(path.join(folderOfDeployed, 'group-replication.sql'), 'utf8')
const account = process.getuid?.() === 0 ? ['--user=root'] : []

/** The mysqld of this machine with the plugin; undefined when there is none. */
export function findMysql(): string | undefined {
  return ['mysqld', '/usr/sbin/mysqld'].find((program) => {
    try {
      const options = ['--no-defaults', '--verbose', '--help', ...account]
      const help = execFileSync(program, options, { encoding: 'utf8', stdio: 'pipe' })
      const plugins = /^plugin-dir +(.+)$/m.exec(help)?.[1] ?? ''
      return existsSync(path.join(plugins, 'group_replication.so'))
    } catch {
      return false
    }
  })
}

/** Starts a cluster of three nodes without data; the first one is the primary. */
export function startGroupReplication(program: string): Promise<Cluster> {
  const catchUp = "set session group_replication_consistency = 'BEFORE'"
  return newCluster('group-replication', catchUp, async (nodes, folder) => {
    const members: string[] = []
    for (const _ of names) members.push(`127.0.0.1:${await freePort()}`)
    const empty = path.join(folder, 'empty')
    const install = ['--no-defaults', '--initialize-insecure', `--init-file=${ROOT_BY_ADDRESS}`]
    execFileSync(program, [...install, `--datadir=${empty}`, ...account], { stdio: 'pipe' })
    rmSync(path.join(empty, 'auto.cnf')) // has the UUID of the server: each node creates its own
    for (const [index, name] of names.entries()) {
      const node = await newProcess(name, program, folder)
      cpSync(empty, node.data, { recursive: true })
      const start = () => {
        node.run([
          `--defaults-file=${configuration}`,
          ...account,
          ...node.options,
          '--mysqlx=OFF',
          `--server-id=${index + 1}`,
          '--report-host=127.0.0.1',
          `--loose-group-replication-local-address=${members[index]}`,
          `--loose-group-replication-group-seeds=${members.join()}`,
        ])
        return node.until('running', async () => (await ask(node.url, 'select 1')) !== undefined)
      }
      const synced = () => node.until('synced', () => agree(nodes))
      const join = async () => {
        await start()
        await synced()
      }
      nodes.push({ ...node, join, synced })
      await start()
      await execute(node.url, setup)
      await execute(node.url, index === 0 ? bootstrap : 'start group_replication')
    }
    await nodes[0]?.synced()
  })
}

const names = ['db1', 'db2', 'db3']

const bootstrap = `set global group_replication_bootstrap_group = ON;
  start group_replication;
  set global group_replication_bootstrap_group = OFF`

async function execute(url: string, sql: string): Promise<void> {
  const connection = await createConnection({ uri: url, multipleStatements: true })
  try {
    await connection.query(sql)
  } finally {
    connection.destroy()
  }
}

/**
 * Whether all nodes see all nodes online, and the same primary. The view of one node is not enough:
 * for some seconds after it was frozen, a node does not know that it was expelled.
 */
async function agree(nodes: Node[]): Promise<boolean> {
  const views = await Promise.all(
    nodes.map(({ url }) =>
      ask(
        url,
        `select sum(member_state = 'ONLINE') as online, max(if(member_role = 'PRIMARY', member_port, 0)) as writer
         from performance_schema.replication_group_members`,
      ),
    ),
  )
  const [first] = views
  return views.every((view) => Number(view?.online) === 3 && view?.writer === first?.writer)
}
