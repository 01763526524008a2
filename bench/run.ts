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
import { compare, merge, type Part, type Table } from './compare.ts'
import { type BenchDatabase, fillDatabase, growDatabase } from './databases.ts'
import { deepCases, deepMarkdown } from './deep.ts'
import { DISTANCES, distantCases, startRelay } from './distant.ts'
import { flood } from './flood.ts'
import { model } from './model.ts'
import { overload } from './overload.ts'
import { profile } from './profile.ts'
import type { Contestant } from './servers.ts'
import {
  type Codec,
  readCheckout,
  SERVICE_FLAGS,
  SERVICE_PROGRAM,
  SERVICE_VARIABLES,
  serviceCodec,
  THIS_CHECKOUT,
} from './service.ts'
import { besideMarkdown, markdown } from './tables.ts'

const allCases = [...restCases(), ...trpcCases]
const ids = allCases.map(({ id }) => id)

const help = `Usage: npm run bench -- [OPTIONS]

  --only PART           one of mysql, sqlite, trpc
  --case CASES          only these cases, separated by commas:
                        ${ids.join(', ')}
  --quick               one round of three seconds per case, as a short test
  --seconds SECONDS     the load on each server in each round; the default is 5
  --runs RUNS           all of it so many times, each with new processes; the default is 1
  --beside FOLDER       another checkout of this service, with its node_modules, as one more server
  --json FILE           write the results to a file, for --capacity
  --distant             the database 1 ms and 15 ms away, for 32 and 200 connections
  --overload            more arrivals than the service can answer, by httperf
  --deep                pages among millions of pets, on MySQL and SQLite
  --model               compare the model of docs/capacity.md with measurements
  --pets PETS           the pets of --deep and --model, a multiple of ${PETS};
                        the default is 10000000
  --capacity FILE       print the tables of docs/capacity.md from such a file
  --profile CASE        show where the time of a request goes; on MySQL, or with --only sqlite
                        on SQLite
`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    case: { type: 'string' },
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    runs: { type: 'string', default: '1' },
    beside: { type: 'string' },
    json: { type: 'string' },
    distant: { type: 'boolean', default: false },
    overload: { type: 'boolean', default: false },
    deep: { type: 'boolean', default: false },
    model: { type: 'boolean', default: false },
    pets: { type: 'string', default: '10000000' },
    capacity: { type: 'string' },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const plain: Codec = { encode: (input) => input, decode: (output) => output }
const peer = (name: string, file: string): Contestant => ({
  name,
  checkout: THIS_CHECKOUT,
  program: `bench/peers/${file}`,
  codec: plain,
})
const service: Contestant = {
  name: '**this service**',
  checkout: THIS_CHECKOUT,
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
const byFastify = (driver: string, file: string) =>
  hasFastify ? [peer(`Fastify + ${driver} prepared statements`, file)] : []

const beside = options.beside === undefined ? undefined : await serviceOf(options.beside)
const services = [...(beside ? [beside] : []), service]

/** The service of another checkout, by the name of its commit. */
async function serviceOf(folder: string): Promise<Contestant> {
  const root = path.resolve(folder)
  const { checkout, flags, variables, codec } = await readCheckout(root)
  const isOther = checkout.nodeVersion !== THIS_CHECKOUT.nodeVersion
  const node = isOther ? ` on Node ${checkout.nodeVersion}` : ''
  return {
    ...service,
    name: `\`${commitOf(root)}\`${node}`,
    checkout,
    flags,
    env: variables,
    codec,
  }
}

/** Each part is a table; its first server is the reference of the ratios. */
const parts = {
  mysql: {
    title: 'REST on MySQL',
    cases: restCases(),
    contestants: [
      byHand.mysql,
      ...byFastify('mysql2', 'fastify-mysql.ts'),
      peer('Express + zod + Kysely', 'express.ts'),
      trpcPeer,
      ...services,
    ],
  },
  sqlite: {
    title: 'REST on SQLite',
    cases: restCases(),
    contestants: [byHand.sqlite, ...byFastify('`node:sqlite`', 'fastify-sqlite.ts'), ...services],
  },
  trpc: { title: 'tRPC on MySQL', cases: trpcCases, contestants: [trpcPeer, ...services] },
}
type PartName = keyof typeof parts

const { only = '', profile: operation = '' } = options
const chosen = options.case?.split(',')
const seconds = Number(options.seconds ?? (options.quick ? 3 : 5))
const pets = Number(options.pets)
const runs = Number(options.runs)
const isPart = (name: string): name is PartName => name in parts
const profiled = allCases.find(({ id }) => id === operation)
const isMistaken =
  (only && !isPart(only)) ||
  (operation && !profiled) ||
  chosen?.some((id) => !ids.includes(id)) ||
  !(seconds >= 1) ||
  !(runs >= 1) ||
  (beside && (options.deep || options.model || options.capacity || operation)) ||
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

for (const program of ['wrk', ...(options.overload ? ['httperf'] : [])]) {
  const { error } = spawnSync(program, ['--version'])
  if (error) throw new Error(`The benchmark needs ${program}: run test/install bench`)
}
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

const databases = new Map<string, Promise<BenchDatabase>>()

/** Returns the database of a contestant for a part. It has one of its own, as its schema may differ. */
function openDatabase(part: PartName, contestant: Contestant): Promise<BenchDatabase> {
  const engine = part === 'sqlite' ? 'sqlite' : 'mysql'
  const name = `${engine}: ${contestant.name}`
  const found = databases.get(name) ?? newDatabase(engine, contestant)
  databases.set(name, found)
  return found
}

let mysql: ReturnType<typeof startMysqlServer> | undefined

async function newDatabase(engine: 'mysql' | 'sqlite', { checkout }: Contestant) {
  if (engine === 'sqlite') {
    const own = mkdtempSync(path.join(folder, 'sqlite-'))
    const url = `sqlite:${path.join(own, 'petstore.db')}`
    return await fill({ url, pid: undefined, checkout, folder })
  }
  mysql ??= startMysqlServer()
  const { url, pid, sql } = await mysql
  const name = `petstore_${databases.size}`
  await sql(`create database ${name}`)
  return await fill({ url: `${url}/${name}`, pid, checkout, folder })
}

async function startMysqlServer() {
  // All data fit into memory, as in production; the other settings are the defaults.
  const size = options.deep || options.model ? '4G' : '1G'
  const server = await startMysql([`--innodb-buffer-pool-size=${size}`])
  cleanup.defer(server.remove)
  const sql = await openSql(server.url)
  cleanup.defer(sql.close)
  return { ...server, sql }
}

async function fill(empty: Parameters<typeof fillDatabase>[0]): Promise<BenchDatabase> {
  const database = await fillDatabase(empty)
  cleanup.defer(database.sql.close)
  stop.signal.throwIfAborted()
  return database
}

/** Pages among many pets; both servers only read, so they share a database. */
async function deep(engine: 'mysql' | 'sqlite'): Promise<Table> {
  const database = await openDatabase(engine, service)
  console.error(`${database.version}: growing to ${pets} pets`)
  await growDatabase(database, pets)
  const title = `${pets.toLocaleString('en')} pets`
  const contestants = [byHand[engine], service]
  const part = { id: `deep.${engine}`, title, cases: deepCases(pets), contestants }
  return await compare(part, async () => database, { ...settings, rounds: 1 })
}

/** Runs a part in new processes as often as `--runs` says, and prints its tables. */
async function comparePart(part: Part, open: (contestant: Contestant) => Promise<BenchDatabase>) {
  const run = (number: number) => {
    if (runs > 1) console.error(`${part.id}, run ${number} of ${runs}`)
    return compare(part, open, settings)
  }
  const all: [Table, ...Table[]] = [await run(1)]
  while (all.length < runs) all.push(await run(all.length + 1))
  const table = merge(all)
  report.tables.push(table)
  console.log(`\n${markdown(table)}`)
  if (beside) console.log(`\n${besideMarkdown(all, service.name, beside.name)}`)
}

/** Pages, look-ups and creations on a database that is some milliseconds away. */
async function compareDistant(delay: number) {
  const open = (contestant: Contestant) => openDatabase('mysql', contestant)
  const contestants = [byHand.mysql, ...services]
  const { url } = await open(byHand.mysql)
  const relay = await startRelay(url, delay)
  const part = {
    id: `distant.${delay}`,
    title: `REST on MySQL, ${delay} ms away each way`,
    cases: distantCases().filter(isChosen),
    contestants,
  }
  const away = async (contestant: Contestant) => {
    const database = await open(contestant)
    return { ...database, url: relay.through(database.url) }
  }
  await comparePart(part, away)
  const { mean, p99, max, processor } = await relay.stop()
  const times = `${mean.toFixed(1)} ms (p99 ${p99.toFixed(1)} ms, at most ${max.toFixed(1)} ms)`
  console.log(
    `\nReally ${times} away each way; the relay took ${processor.toFixed(0)} µs for each piece of data.`,
  )
}

function commitOf(cwd: string): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd, encoding: 'utf8' }).trim()
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
  commit: commitOf(import.meta.dirname),
  machine: `${cpus().length} cores, ${cpus()[0]?.model}, Node ${process.versions.node}`,
  tables: [],
}
const isChosen = ({ id }: { id: string }) =>
  chosen?.some((name) => id === name || id.startsWith(`${name}.`)) ?? true
const engines = only && isPart(only) ? [only] : (['mysql', 'sqlite', 'trpc'] as const)

if (profiled) {
  const engine = only === 'sqlite' ? 'sqlite' : 'mysql'
  await profile(service, profiled, await openDatabase(engine, service), settings)
} else {
  console.log(provenance(report.commit, report.machine))
  if (options.model) {
    const once = { ...settings, rounds: 1 }
    console.log(
      `\n${await model(service, await openDatabase('mysql', service), [PETS, pets], once)}`,
    )
  } else if (options.distant) {
    for (const delay of DISTANCES) await compareDistant(delay)
  } else if (options.overload) {
    const open = (contestant: Contestant) => openDatabase('mysql', contestant)
    console.log(`\n${await overload([byHand.mysql, ...services], open, settings)}`)
    console.log(`\n${await flood(services, open, settings)}`)
  } else if (options.deep) {
    for (const engine of engines) {
      if (engine === 'trpc') continue
      const table = await deep(engine)
      report.tables.push(table)
      console.log(`\n${deepMarkdown(table)}`)
    }
  } else {
    for (const id of engines) {
      const cases = parts[id].cases.filter(isChosen)
      if (cases.length === 0) continue
      await comparePart({ ...parts[id], id, cases }, (contestant) => openDatabase(id, contestant))
    }
  }
}
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
