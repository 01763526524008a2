/** The servers under load: each a process of its own, as its operator would start it. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../test/support/mysql.ts'
import type { BenchDatabase } from './databases.ts'
import type { Codec } from './service.ts'

/** Milliseconds that a server may take to start, and to stop. */
const TIMEOUT = 10_000

/** What is started: a program of this repository, under the name that the tables show. */
export interface Contestant {
  name: string
  program: string
  /** What it wants Node to be told. */
  flags?: string[]
  codec: Codec
}

export interface Server extends Contestant {
  origin: string
  key: string
  /** For what belongs to it alone; removed with the folder that it is in. */
  folder: string
  /** Bytes of resident memory: after the start, and the most that was seen since. */
  memory: { idle: number; most: number }
  sampleMemory(): Promise<void>
  countPets(): Promise<number>
  /** Empties its log, which grows by megabytes a second. */
  emptyLog(): void
  stop(): Promise<void>
}

/** Starts a server, in a new folder inside `parent`, and waits until it answers. */
export async function startServer(
  contestant: Contestant,
  { url, key, sql }: BenchDatabase,
  parent: string,
): Promise<Server> {
  const folder = await mkdtemp(path.join(parent, 'server-'))
  const port = await freePort()
  const log = path.join(folder, 'log')
  const output = openSync(log, 'a')
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(
    process.execPath,
    [...(contestant.flags ?? []), path.join(import.meta.dirname, '..', contestant.program)],
    {
      cwd: folder, // no .env of this checkout counts
      env: {
        PATH,
        HOME,
        NODE_ENV: 'production',
        NODE_COMPILE_CACHE: path.join(import.meta.dirname, '../node_modules/.cache/node'),
        PORT: String(port),
        DATABASE_URL: url,
        API_KEY: key,
      },
      stdio: ['ignore', output, output],
    },
  )
  closeSync(output) // the process has its own
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit').then(() => process.off('exit', kill))

  const server: Server = {
    ...contestant,
    origin: `http://127.0.0.1:${port}`,
    key,
    folder,
    memory: { idle: 0, most: 0 },
    async sampleMemory() {
      const asked = promisify(execFile)('ps', ['-o', 'rss=', '-p', String(child.pid)])
      // Of a process that has ended, its unanswered requests tell.
      const { stdout } = await asked.catch(() => ({ stdout: '' }))
      server.memory.most = Math.max(server.memory.most, Number(stdout) * 1024)
    },
    async countPets() {
      const [row] = await sql('select count(*) as count from pets')
      return Number(row?.count)
    },
    emptyLog: () => truncateSync(log),
    async stop() {
      child.kill('SIGTERM')
      const timer = new AbortController()
      setTimeout(TIMEOUT, undefined, timer).then(kill, () => {})
      await exited
      timer.abort()
    },
  }

  const headers = { Authorization: `Bearer ${key}` }
  for (const deadline = Date.now() + TIMEOUT; ; await setTimeout(50)) {
    const answer = await fetch(`${server.origin}/v1/pets`, { headers }).catch(() => undefined)
    await answer?.bytes()
    if (answer?.ok) return server
    if (child.exitCode !== null || Date.now() > deadline) {
      await server.stop()
      throw new Error(`${contestant.program} did not start:\n${readFileSync(log, 'utf8')}`)
    }
  }
}
