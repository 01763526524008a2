/** Compares servers under the same cases, in rounds. */
import { isDeepStrictEqual } from 'node:util'
import { type Case, repeatable } from './cases.ts'
import { type BenchDatabase, commitsPerSecond } from './databases.ts'
import { type Contestant, type Server, startServer } from './servers.ts'
import { load, type Result } from './wrk.ts'

export interface Settings {
  /** The parent of temporary folders. */
  folder: string
  /** Aborts the comparison. */
  signal: AbortSignal
  rounds: number
  /** The duration of one server in one round. */
  seconds: number
  /** Seconds of warm-up of each server, before a case is measured. */
  warmUp: number
}

export interface Part {
  id: string
  title: string
  cases: Case[]
  contestants: Contestant[]
}

/** The results of one case. */
export interface Row {
  id: string
  title: string
  connections: number
  isEqual: boolean
  /** Inserts per second that SQLite alone commits one by one on this disk, if the case creates pets. */
  commits: number | undefined
  /** The results of each server, in the order of the table. */
  results: Result[]
}

/** The results of one part. The first server is the reference of the ratios. */
export interface Table {
  id: string
  title: string
  /** The name and the version of the database. */
  version: string
  /** Bytes of one pet on disk. */
  bytesPerPet: number
  servers: { name: string; sharesEqual: boolean; memory: { idle: number; most: number } }[]
  rows: Row[]
}

/** Runs all cases on all servers. */
export async function compare(
  { id, title, cases, contestants }: Part,
  openDatabase: (contestant: Contestant) => Promise<BenchDatabase>,
  settings: Settings,
): Promise<Table> {
  await using running = new AsyncDisposableStack()
  const servers: Server[] = []
  let described = { version: '', bytesPerPet: Number.NaN }
  for (const contestant of contestants) {
    const database = await openDatabase(contestant)
    const server = await startServer(contestant, database, settings.folder)
    running.defer(server.stop)
    servers.push(server)
    described = { version: database.version, bytesPerPet: database.bytesPerPet }
  }
  for (const { memory, sampleMemory } of servers) {
    await sampleMemory()
    memory.idle = memory.most
  }
  const rows: Row[] = []
  for (const test of cases) rows.push(await measure(servers, test, settings))
  return {
    id,
    title,
    ...described,
    servers: servers.map(({ name, sharesEqual = false, memory }) => ({
      name,
      sharesEqual,
      memory,
    })),
    rows,
  }
}

/** Runs one case on all servers, alternating between them, because the speed of the machine varies. */
async function measure(
  servers: Server[],
  test: Case,
  { folder, rounds, seconds, warmUp, signal }: Settings,
): Promise<Row> {
  await compareAnswers(servers, test)
  if (warmUp > 0) {
    // V8 goes on compiling for some 30,000 requests, on the second core, which one caller alone notices.
    const seconds = test.connections === 1 ? 5 * warmUp : warmUp
    for (const server of servers) await load(server, test, { seconds, strict: true, signal })
  }
  const entries = servers.map((server) => ({ server, results: [] as Result[] }))
  const commits: number[] = []
  for (let round = 1; round <= rounds; round++) {
    // The speed of the disk varies, and creations wait for it.
    if (test.creates) commits.push(commitsPerSecond(folder))
    // Each second round runs backwards, so that no server always follows the same one.
    for (const { server, results } of round % 2 === 0 ? entries.toReversed() : entries) {
      const result = await load(server, test, { seconds, strict: false, signal })
      results.push(result)
      const perSecond = Math.round(result.requests / result.seconds)
      const p99 = result.p99.toFixed(1)
      console.error(`${test.id}, round ${round}, ${server.name}: ${perSecond}/s, p99 ${p99} ms`)
    }
  }
  const { id, title, connections, isEqual } = test
  const results = entries.map(({ results }) => combined(results))
  return { id, title, connections, isEqual, commits: median(commits), results }
}

/** Throws unless all servers return the same response to the same request. */
async function compareAnswers(servers: Server[], test: Case): Promise<void> {
  const answers: unknown[] = []
  for (const { name, origin, key, codec } of servers) {
    const { path, body } = test.request(repeatable(), codec)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const answer =
      body === undefined
        ? await fetch(origin + path, { headers })
        : await fetch(origin + path, { method: 'POST', headers, body })
    const text = await answer.text()
    if (answer.status !== (body === undefined ? 200 : 201)) {
      throw new Error(`${name}, ${test.title}: ${text}`)
    }
    const parsed = JSON.parse(text) as never // each case knows the form of its responses
    answers.push(test.read(parsed, codec))
    if (!isDeepStrictEqual(answers.at(-1), answers[0])) {
      throw new Error(`${name}, ${test.title}: another answer than that of ${servers[0]?.name}`)
    }
  }
}

/** Combines the tables of several runs of one part. */
export function merge(runs: [Table, ...Table[]]): Table {
  const [first] = runs
  const middle = (values: number[]) => median(values) ?? Number.NaN
  return {
    ...first,
    servers: first.servers.map((server, index) => {
      const all = runs.flatMap(({ servers }) => servers[index]?.memory ?? [])
      const memory = {
        idle: middle(all.map(({ idle }) => idle)),
        most: middle(all.map(({ most }) => most)),
      }
      return { ...server, memory }
    }),
    rows: first.rows.map((row, place) => ({
      ...row,
      commits: median(runs.flatMap(({ rows }) => rows[place]?.commits ?? [])),
      results: row.results.map((_result, index) =>
        combined(runs.flatMap(({ rows }) => rows[place]?.results[index] ?? [])),
      ),
    })),
  }
}

/** Combines several results: sums of counts, and medians of other values. */
function combined(results: Result[]): Result {
  const sum = (name: keyof Result) => results.reduce((total, result) => total + result[name], 0)
  const middle = (name: keyof Result) => median(results.map((result) => result[name])) ?? Number.NaN
  return {
    requests: sum('requests'),
    seconds: sum('seconds'),
    p50: middle('p50'),
    p99: middle('p99'),
    bytes: sum('bytes'),
    service: sum('service'),
    database: sum('database'),
    load: sum('load'),
    statements: sum('statements'),
    inserts: sum('inserts'),
  }
}

/** Returns the median; undefined of no values. */
export function median(values: number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other)
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return lower === undefined || upper === undefined ? undefined : (lower + upper) / 2
}
