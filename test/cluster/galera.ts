/** A real three-node MariaDB Galera cluster on loopback, configured with deploy/galera.cnf. */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { freePort } from '../support/mysql.ts'
import { ask, type Cluster, newCluster, newProcess } from './node.ts'

const PROGRAM = '/usr/sbin/mariadbd'
const deployed = path.join(import.meta.dirname, '../../deploy/galera.cnf')

/** Starts a cluster of three nodes without data. */
export function startGalera(): Promise<Cluster> {
  return newCluster('galera', 'set session wsrep_sync_wait = 1', async (nodes, folder) => {
    copyFileSync(deployed, path.join(folder, 'galera.cnf')) // readable for the user of the servers
    const address: string[] = []
    for (const _ of names) address.push(`127.0.0.1:${await freePort()}`)
    for (const [index, name] of names.entries()) {
      const { node, start } = await newNode(name, folder, address, index)
      nodes.push(node)
      await (index === 0 ? start(['--wsrep-new-cluster']) : node.join())
    }
  })
}

const names = ['db1', 'db2', 'db3']

async function newNode(name: string, folder: string, group: string[], index: number) {
  const node = await newProcess(name, PROGRAM, folder)
  const provider = [
    readOption('wsrep_provider_options'),
    `gmcast.listen_addr=tcp://${group[index]}`,
    `ist.recv_addr=127.0.0.1:${await freePort()}`,
    'gcache.size=32M',
  ]
  const options = [
    `--defaults-file=${path.join(folder, 'galera.cnf')}`,
    ...node.options,
    '--performance-schema=OFF',
    `--wsrep-node-name=${name}`,
    `--wsrep-node-address=${group[index]}`,
    `--wsrep-node-incoming-address=127.0.0.1:${node.port}`,
    `--wsrep-cluster-address=gcomm://${group.join()}`,
    `--wsrep-sst-receive-address=127.0.0.1:${await freePort()}`,
    `--wsrep-sst-donor=${name === 'db3' ? 'db2' : 'db3'},`,
    `--wsrep-provider-options=${provider.join(';')}`,
  ]
  mkdirSync(node.data)
  if (index === 0) {
    const flags = ['--auth-root-authentication-method=normal', '--skip-test-db']
    const install = ['--no-defaults', ...flags, `--datadir=${node.data}`]
    execFileSync('mariadb-install-db', install, { stdio: 'pipe' })
  }
  // rsync, which copies the data to a new node, cannot write as root.
  if (process.getuid?.() === 0) {
    execFileSync('chown', ['-R', 'mysql', folder])
    options.push('--user=mysql')
  }

  const state = () => ask(node.url, "show status like 'wsrep_local_state_comment'")
  const synced = () => node.until('synced', async () => (await state())?.Value === 'Synced')
  const start = (flags: string[]) => {
    node.run([...options, ...flags])
    return synced()
  }
  const join = () => start([`--wsrep-start-position=${recovered(options)}`])
  return { node: { ...node, join, synced }, start }
}

/** The last position of a node, as the systemd unit reads it: it allows an incremental transfer. */
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
