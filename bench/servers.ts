/** The servers under load, each as a process that is started as in production. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../test/support/mysql.ts'
import type { BenchDatabase } from './databases.ts'
import { processorTime, residentMemory } from './processes.ts'
import type { Checkout, Codec } from './service.ts'

/** The timeout of a start and of a stop, in milliseconds. */
const TIMEOUT = 30_000

/** A program of a checkout, with its name in the tables. */
export interface Contestant {
  name: string
  checkout: Checkout
  /** Its path in the checkout. */
  program: string
  /** Its options of Node. */
  flags?: string[]
  /** Its environment variables, beside those of every server. */
  env?: Record<string, string>
  codec: Codec
  /** Whether it supports an Idempotency-Key. */
  takesKeys?: boolean
  /** Whether equal concurrent reads share one query. */
  sharesEqual?: boolean
}

/** The resources that a server and its database have used so far. */
export interface Sample {
  /** Seconds of processor time of the server, and of the process of the database, if there is one. */
  service: number
  database: number
  /** Statements on the database, and inserts among them. */
  statements: number
  inserts: number
}

export interface Server extends Contestant {
  origin: string
  key: string
  pid: number
  /** The process of its database; undefined for the embedded one. */
  databasePid: number | undefined
  /** Its own folder, which is removed with its parent. */
  folder: string
  /** Bytes of resident memory after the start, and the maximum since then. */
  memory: { idle: number; most: number }
  sampleMemory(): Promise<void>
  sample(): Promise<Sample>
  countPets(): Promise<number>
  /** Empties its log, which grows by megabytes per second. */
  emptyLog(): void
  stop(): Promise<void>
}

/** Starts a server in a new folder inside `parent`, and waits until it responds. */
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
  const { root, node } = contestant.checkout
  const child = spawn(node, [...(contestant.flags ?? []), path.join(root, contestant.program)], {
    cwd: folder, // no .env file of this checkout is used
    env: {
      PATH,
      HOME,
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/node'),
      PORT: String(port),
      DATABASE_URL: url,
      API_KEY: key,
      ...contestant.env,
    },
    stdio: ['ignore', output, output],
  })
  closeSync(output) // the process has its own descriptor
  const serverPid = child.pid ?? 0 // a process that could not be started does not respond below
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit').then(() => process.off('exit', kill))

  const server: Server = {
    ...contestant,
    origin: `http://127.0.0.1:${port}`,
    key,
    pid: serverPid,
    databasePid: pid,
    folder,
    memory: { idle: 0, most: 0 },
    async sampleMemory() {
      // If the process has ended, its failed requests show that.
      server.memory.most = Math.max(server.memory.most, await residentMemory(serverPid))
    },
    sample: async () => ({
      service: processorTime(serverPid),
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
