/** Real MySQL or MariaDB servers, from the programs of this machine, in temporary folders. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'

export interface MysqlServer {
  /** The URL of the user root, without a database. */
  url: string
  pid: number
  /** Restarts the server after its process has ended, with the same data and port. */
  restart(): Promise<void>
  /** Stops the server and keeps its data. */
  stop(): Promise<void>
  /** Kills the server and removes its data. */
  remove(): Promise<void>
}

/** Statements by which an empty MySQL server lets root in by IP address, as MariaDB does. */
export const ROOT_BY_ADDRESS = path.join(import.meta.dirname, 'mysql-root.sql')

/** Starts a new server with additional flags. It listens on a free port of 127.0.0.1. */
export async function startMysql(flags: string[] = []): Promise<MysqlServer> {
  const { program, isMariadb } = findServer()
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-mysql-'))
  const common = [
    `--datadir=${path.join(folder, 'data')}`,
    // A server that starts in this folder removes the temporary tables of other servers.
    `--tmpdir=${folder}`,
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ]
  const [installer, ...installing] = isMariadb
    ? [
        'mariadb-install-db',
        '--force',
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
      ]
    : [program, '--initialize-insecure', `--init-file=${ROOT_BY_ADDRESS}`]
  const ofData = flags.filter((flag) => flag.startsWith('--innodb-page-size'))
  const options = ['--no-defaults', ...installing, ...common, ...ofData]
  execFileSync(installer as string, options, { stdio: 'pipe' })
  const port = await freePort()
  const pidFile = path.join(folder, 'pid')

  const run = async () => {
    const child = spawn(
      program,
      [
        '--no-defaults',
        ...common,
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        `--socket=${path.join(folder, 'socket')}`,
        `--pid-file=${pidFile}`,
        `--log-error=${path.join(folder, 'log')}`,
        '--innodb-buffer-pool-size=64M',
        '--performance-schema=OFF',
        // With global transaction ids a trigger could not count attempts that are rolled back.
        ...(isMariadb ? [] : ['--mysqlx=OFF', '--gtid-mode=OFF', '--enforce-gtid-consistency=OFF']),
        ...flags,
      ],
      { stdio: 'ignore' },
    )
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    await answering(server.url, pidFile, () => child.exitCode === null).catch((error) => {
      kill()
      throw new Error(
        `${program} did not start:\n${readFileSync(path.join(folder, 'log'), 'utf8')}`,
        { cause: error },
      )
    })
    server.pid = child.pid as number
    return child
  }
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGCONT')
    child.kill(signal)
    await once(child, 'exit')
  }
  const server: MysqlServer = {
    url: `mysql://root@127.0.0.1:${port}`,
    pid: 0,
    async restart() {
      child = await run()
    },
    stop: () => end('SIGTERM'),
    async remove() {
      await end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  let child = await run()
  return server
}

function findServer(): { program: string; isMariadb: boolean } {
  for (const program of ['mysqld', 'mariadbd', '/usr/sbin/mysqld', '/usr/sbin/mariadbd']) {
    try {
      const version = execFileSync(program, ['--no-defaults', '--version'], {
        encoding: 'utf8',
        stdio: 'pipe',
      })
      return { program, isMariadb: version.includes('MariaDB') }
    } catch {}
  }
  throw new Error(
    'The tests need a MySQL or MariaDB server: run test/install, or set TEST_DATABASE_URL',
  )
}

/** The number of ports of each process: another one would take a port before the server listens there. */
const OWN = 1_000
// Below 32768: above it an outgoing connection may take the port before the server does.
const firstPort = 20_000 + OWN * Number(process.env.VITEST_POOL_ID ?? 0)
let ports = Math.floor(Math.random() * OWN) // other runs of the tests begin elsewhere

/** A free port outside the range of outgoing connections, which this process does not get again soon. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + (ports++ % OWN)
    const probe = createServer().listen(port, '127.0.0.1')
    const free = await once(probe, 'listening').then(
      () => true,
      () => false,
    )
    if (!free) continue
    probe.close()
    await once(probe, 'close')
    return port
  }
}

/** Resolves once the server with this pid file answers: a proxy of another test may have taken its port. */
async function answering(url: string, pidFile: string, alive: () => boolean): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      const connection = await createConnection(url)
      const [[row]] = await connection.query<RowDataPacket[]>('select @@pid_file as pidFile')
      connection.destroy()
      if (row?.pidFile === pidFile) return
      throw new Error('Another server answers at its port')
    } catch (error) {
      if (!alive() || attempt > 300) throw error
      await setTimeout(100)
    }
  }
}
