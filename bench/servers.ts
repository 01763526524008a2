/** The servers under load: each a process of its own, as its operator would start it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../test/support/mysql.ts'
import type { BenchDatabase } from './databases.ts'
import { processorTime, residentMemory } from './processes.ts'
import type { Codec } from './service.ts'

/** Milliseconds that a server may take to start, and to stop. */
const TIMEOUT = 30_000

/** What is started: a program of this repository, under the name that the tables show. */
export interface Contestant {
  name: string
  program: string
  /** What it wants Node to be told. */
  flags?: string[]
  /** Variables of its environment, beside those of every server. */
  env?: Record<string, string>
  codec: Codec
  /** Whether it takes an Idempotency-Key. */
  takesKeys?: boolean
  /** Whether it answers equal concurrent reads with one query. */
  sharesEqual?: boolean
}

/** What a server and its database have used so far. */
export interface Sample {
  /** Seconds of processor time: of the server, and of the database's process, if it has one. */
  service: number
  database: number
  /** Statements that the database was sent, and those among them that inserted. */
  statements: number
  inserts: number
}

export interface Server extends Contestant {
  origin: string
  key: string
  /** For what belongs to it alone; removed with the folder that it is in. */
  folder: string
  /** Bytes of resident memory: after the start, and the most that was seen since. */
  memory: { idle: number; most: number }
  sampleMemory(): Promise<void>
  sample(): Promise<Sample>
  countPets(): Promise<number>
  /** Empties its log, which grows by megabytes a second. */
  emptyLog(): void
  stop(): Promise<void>
}

/** Starts a server, in a new folder inside `parent`, and waits until it answers. */
export async function startServer(
  contestant: Contestant,
  { url, key, sql, pid, countStatements }: BenchDatabase,
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
        ...contestant.env,
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
      // Of a process that has ended, its unanswered requests tell.
      server.memory.most = Math.max(server.memory.most, await residentMemory(child.pid ?? 0))
    },
    sample: async () => ({
      service: processorTime(child.pid ?? 0),
      database: pid === undefined ? 0 : processorTime(pid),
      ...(await countStatements()),
    }),
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
