/**
 * `npm run bench`: compares the service with its peers, with the same data and the same load.
 * It prints the tables (Markdown) to stdout and the figures of each round to stderr.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startMysql } from '../test/support/mysql.ts'
import { openSql } from '../test/support/sql.ts'
import { capacityMarkdown } from './capacity.ts'
import { PETS, restCases, trpcCases } from './cases.ts'
import { compare, type Table } from './compare.ts'
import { type BenchDatabase, fillDatabase, growDatabase } from './databases.ts'
import { deepCases, deepMarkdown } from './deep.ts'
import { model } from './model.ts'
import { profile } from './profile.ts'
import type { Contestant } from './servers.ts'
import {
  type Codec,
  SERVICE_FLAGS,
  SERVICE_PROGRAM,
  SERVICE_VARIABLES,
  serviceCodec,
} from './service.ts'
import { markdown } from './tables.ts'

const allCases = [...restCases(), ...trpcCases]
const ids = allCases.map(({ id }) => id)

const help = `Usage: npm run bench -- [OPTIONS]

  --only PART           one of mysql, sqlite, trpc
  --case CASES          only these cases, separated by commas:
                        ${ids.join(', ')}
  --quick               one round of three seconds per case, as a short test
  --seconds SECONDS     the load on each server in each round; the default is 5
  --json FILE           write the results to a file, for --capacity
  --deep                pages among millions of pets, on MySQL and SQLite
  --model               compare the model of docs/capacity.md with measurements
  --pets PETS           the pets of --deep and --model, a multiple of ${PETS};
                        the default is 10000000
  --capacity FILE       print the tables of docs/capacity.md from such a file
  --profile CASE        show where the time of a request goes; on MySQL, or with --only sqlite
                        on SQLite
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
  env: SERVICE_VARIABLES,
  codec: serviceCodec,
  takesKeys: true,
  sharesEqual: true,
}
const byHand = {
  mysql: peer('`node:http` + mysql2 prepared statements', 'by-hand-mysql.ts'),
  sqlite: peer('`node:http` + `node:sqlite` prepared statements', 'by-hand-sqlite.ts'),
}
const trpcPeer = peer('tRPC + trpc-to-openapi + Kysely, as in their READMEs', 'trpc.ts')

// Fastify is not a dependency: npm would install it in production, too, as an optional peer of
// trpc-to-openapi.
const hasFastify = existsSync(path.join(import.meta.dirname, 'peers/node_modules/fastify'))
const fastify = hasFastify ? [peer('Fastify + mysql2 prepared statements', 'fastify.ts')] : []

/** Each part is a table; its first server is the reference of the ratios. */
const parts = {
  mysql: {
    title: 'REST on MySQL',
    cases: restCases(),
    contestants: [
      byHand.mysql,
      ...fastify,
      peer('Express + zod + Kysely', 'express.ts'),
      trpcPeer,
      service,
    ],
  },
  sqlite: {
    title: 'REST on SQLite',
    cases: restCases(),
    contestants: [byHand.sqlite, service],
  },
  trpc: { title: 'tRPC on MySQL', cases: trpcCases, contestants: [trpcPeer, service] },
}
type Part = keyof typeof parts

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    case: { type: 'string' },
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    json: { type: 'string' },
    deep: { type: 'boolean', default: false },
    model: { type: 'boolean', default: false },
    pets: { type: 'string', default: '10000000' },
    capacity: { type: 'string' },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const { only = '', profile: operation = '' } = options
const chosen = options.case?.split(',')
const seconds = Number(options.seconds ?? (options.quick ? 3 : 5))
const pets = Number(options.pets)
const isPart = (name: string): name is Part => name in parts
const profiled = allCases.find(({ id }) => id === operation)
const isMistaken =
  (only && !isPart(only)) ||
  (operation && !profiled) ||
  chosen?.some((id) => !ids.includes(id)) ||
  !(seconds >= 1) ||
  !(pets >= PETS && pets % PETS === 0)
if (options.help || isMistaken) {
  console.log(help)
  process.exit(isMistaken ? 1 : 0)
}

/** The results, as `--json` writes them. */
interface Report {
  commit: string
  machine: string
  tables: Table[]
}

if (options.capacity) {
  const { commit, machine, tables }: Report = JSON.parse(readFileSync(options.capacity, 'utf8'))
  const measured = tables.find(({ id }) => id === 'mysql')
  if (!measured) throw new Error(`${options.capacity} has no figures of REST on MySQL`)
  const place = measured.servers.findIndex(({ name }) => name === service.name)
  console.log(`${provenance(commit, machine)}\n\n${capacityMarkdown(measured, place)}`)
  process.exit()
}

if (spawnSync('wrk').error) throw new Error('The benchmark needs wrk: run test/install bench')
if (!hasFastify) {
  console.error('Fastify is left out: npm install --prefix bench/peers --no-save fastify@5')
}

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
    mysql ??= await startMysqlDatabase()
    return mysql
  }
  return await fill(`sqlite:${path.join(mkdtempSync(path.join(folder, 'sqlite-')), 'petstore.db')}`)
}

async function startMysqlDatabase(): Promise<BenchDatabase> {
  // All data fit into memory, as in production; the other settings are the defaults.
  const size = options.deep || options.model ? '4G' : '1G'
  const server = await startMysql([`--innodb-buffer-pool-size=${size}`])
  cleanup.defer(server.remove)
  const sql = await openSql(server.url)
  await sql('create database petstore')
  await sql.close()
  return await fill(`${server.url}/petstore`, server.pid)
}

async function fill(url: string, pid?: number): Promise<BenchDatabase> {
  const database = await fillDatabase(url, pid)
  cleanup.defer(database.sql.close)
  stop.signal.throwIfAborted()
  return database
}

/** Pages among many pets; both servers only read, so they share a database. */
async function deep(engine: 'mysql' | 'sqlite'): Promise<Table> {
  const database = await openDatabase(engine)
  console.error(`${database.version}: growing to ${pets} pets`)
  await growDatabase(database, pets)
  const title = `${pets.toLocaleString('en')} pets`
  const contestants = [byHand[engine], service]
  const part = { id: `deep.${engine}`, title, cases: deepCases(pets), contestants }
  return await compare(part, async () => database, { ...settings, rounds: 1 })
}

function currentCommit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') && ', changed'}`
  } catch {
    return 'unknown'
  }
}

function provenance(commit: string, machine: string): string {
  return `Commit: ${commit}. Machine: ${machine}.`
}

const settings = {
  folder,
  signal: stop.signal,
  rounds: options.quick ? 1 : 3,
  seconds,
  warmUp: Math.min(seconds, options.quick ? 1 : 3),
}

const report: Report = {
  commit: currentCommit(),
  machine: `${cpus().length} cores, ${cpus()[0]?.model}, Node ${process.versions.node}`,
  tables: [],
}
const engines = only && isPart(only) ? [only] : (['mysql', 'sqlite', 'trpc'] as const)

if (profiled) {
  await profile(service, profiled, await openDatabase(only === 'sqlite' ? 'sqlite' : 'mysql'), {
    ...settings,
  })
} else {
  console.log(provenance(report.commit, report.machine))
  if (options.model) {
    const rounds = 1
    const database = await openDatabase('mysql')
    console.log(`\n${await model(service, database, [PETS, pets], { ...settings, rounds })}`)
  } else {
    for (const part of engines) {
      if (options.deep) {
        if (part === 'trpc') continue
        const table = await deep(part)
        report.tables.push(table)
        console.log(`\n${deepMarkdown(table)}`)
        continue
      }
      const cases = parts[part].cases.filter(({ id }) => chosen?.includes(id) ?? true)
      if (cases.length === 0) continue
      const open = () => openDatabase(part)
      const table = await compare({ ...parts[part], id: part, cases }, open, settings)
      report.tables.push(table)
      console.log(`\n${markdown(table)}`)
    }
  }
}
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
