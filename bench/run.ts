/**
 * `npm run bench`: the service beside its peers, on the same data, under the same load, in turn.
 * The tables (Markdown) go to stdout, the figures of each round to stderr while it runs.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startMysql } from '../test/support/mysql.ts'
import { openSql } from '../test/support/sql.ts'
import { restCases, trpcCases } from './cases.ts'
import { compare } from './compare.ts'
import { type BenchDatabase, fillDatabase } from './databases.ts'
import { profile } from './profile.ts'
import type { Contestant } from './servers.ts'
import { type Codec, SERVICE_FLAGS, SERVICE_PROGRAM, serviceCodec } from './service.ts'

const help = `Usage: npm run bench -- [OPTIONS]

  --quick               one round of a second each, to see that it runs
  --only PART           one of mysql, sqlite, trpc
  --profile OPERATION   show where the time of a request goes: one of
                        ${[...restCases, ...trpcCases].map(({ id }) => id).join(', ')};
                        on MySQL, or with --only sqlite on SQLite
`

const plain: Codec = { encode: (input) => input, decode: (output) => output }
const peer = (name: string, file: string): Contestant => ({
  name,
  program: `bench/peers/${file}`,
  codec: plain,
})
const service: Contestant = {
  name: '**this service**',
  program: SERVICE_PROGRAM,
  flags: SERVICE_FLAGS,
  codec: serviceCodec,
}
const trpcPeer = peer('tRPC + trpc-to-openapi + Kysely, as in their READMEs', 'trpc.ts')

// Fastify is not among them: npm would install it for production too, as it is an optional peer of
// trpc-to-openapi.
/** Each part is a table; the first in it is the one that the others are measured by. */
const parts = {
  mysql: {
    title: 'REST on MySQL',
    cases: restCases,
    contestants: [
      peer('`node:http` + mysql2 prepared statements', 'by-hand-mysql.ts'),
      peer('Express + zod + Kysely', 'express.ts'),
      trpcPeer,
      service,
    ],
  },
  sqlite: {
    title: 'REST on SQLite',
    cases: restCases,
    contestants: [
      peer('`node:http` + `node:sqlite` prepared statements', 'by-hand-sqlite.ts'),
      service,
    ],
  },
  trpc: { title: 'tRPC on MySQL', cases: trpcCases, contestants: [trpcPeer, service] },
}
type Part = keyof typeof parts

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const { only = '', profile: operation = '' } = options
const isPart = (name: string): name is Part => name in parts
const profiled = [...restCases, ...trpcCases].find(({ id }) => id === operation)
const isMistaken = (only && !isPart(only)) || (operation && !profiled)
if (options.help || isMistaken) {
  console.log(help)
  process.exit(isMistaken ? 1 : 0)
}

if (spawnSync('wrk').error) throw new Error('The benchmark needs wrk: run test/install bench')

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop.abort(new Error(`Ended by ${signal}`)))
}
await using cleanup = new AsyncDisposableStack()
const folder = mkdtempSync(path.join(tmpdir(), 'petstore-bench-'))
cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))

let mysql: BenchDatabase | undefined
async function openDatabase(part: Part): Promise<BenchDatabase> {
  if (part !== 'sqlite') {
    mysql ??= await fill(await startMysqlDatabase())
    return mysql
  }
  return await fill(`sqlite:${path.join(mkdtempSync(path.join(folder, 'sqlite-')), 'petstore.db')}`)
}

async function startMysqlDatabase(): Promise<string> {
  // All data fit into memory, as an operator would see to it; the rest is as installed.
  const server = await startMysql(['--innodb-buffer-pool-size=1G'])
  cleanup.defer(server.remove)
  const sql = await openSql(server.url)
  await sql('create database petstore')
  await sql.close()
  return `${server.url}/petstore`
}

async function fill(url: string): Promise<BenchDatabase> {
  const database = await fillDatabase(url)
  cleanup.defer(database.sql.close)
  stop.signal.throwIfAborted()
  return database
}

const settings = {
  folder,
  signal: stop.signal,
  rounds: options.quick ? 1 : 3,
  seconds: options.quick ? 1 : 5,
  warmUp: options.quick ? 1 : 3,
}

if (profiled) {
  const database = await openDatabase(only === 'sqlite' ? 'sqlite' : 'mysql')
  await profile(service, profiled, database, settings)
} else {
  for (const part of only && isPart(only) ? [only] : (['mysql', 'sqlite', 'trpc'] as const)) {
    await compare(parts[part], () => openDatabase(part), settings)
  }
}
