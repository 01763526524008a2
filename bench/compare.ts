/** One table: several servers under the same cases, round by round. */
import { isDeepStrictEqual } from 'node:util'
import { type Case, repeatable } from './cases.ts'
import { type BenchDatabase, commitsPerSecond } from './databases.ts'
import { type Contestant, type Server, startServer } from './servers.ts'
import { load, type Result } from './wrk.ts'

export interface Settings {
  /** Where temporary folders are made. */
  folder: string
  /** Ends everything early. */
  signal: AbortSignal
  rounds: number
  /** Of one server in one round. */
  seconds: number
  /** Seconds for which each server is asked, before a case is measured. */
  warmUp: number
}

interface Part {
  title: string
  cases: Case[]
  contestants: Contestant[]
}

/** Runs all cases on all servers, and prints the table. */
export async function compare(
  { title, cases, contestants }: Part,
  openDatabase: () => Promise<BenchDatabase>,
  settings: Settings,
): Promise<void> {
  await using running = new AsyncDisposableStack()
  const servers: Server[] = []
  let version = ''
  for (const contestant of contestants) {
    const database = await openDatabase()
    const server = await startServer(contestant, database, settings.folder)
    running.defer(server.stop)
    servers.push(server)
    version = database.version
  }
  for (const { memory, sampleMemory } of servers) {
    await sampleMemory()
    memory.idle = memory.most
  }

  const columns: Result[][] = []
  const commits: number[] = []
  for (const test of cases) columns.push(await measure(servers, test, settings, commits))

  const row = (cells: string[]) => `| ${cells.join(' | ')} |`
  console.log(`\n${title} (${version})\n`)
  console.log(row(['', ...cases.map((test) => test.title), 'resident memory: idle, most']))
  console.log(row(Array.from({ length: cases.length + 2 }, () => '---')))
  for (const [index, { name, memory }] of servers.entries()) {
    const cells = columns.map((results) => cell(results, index))
    const [idle, most] = [memory.idle, memory.most].map((bytes) => Math.round(bytes / 1e6))
    console.log(row([name, ...cells, `${idle}, ${most} MB`]))
  }
  if (commits.length === 0) return
  console.log(
    `\nInserts a second that SQLite alone commits here, one by one: ${commits.join(', ')}.`,
  )
}

/**
 * Of each server, in their order, all rounds together. What the disk does varies, and creations
 * wait for it: `commits` gets its own figure before each round of them.
 */
async function measure(
  servers: Server[],
  test: Case,
  { folder, rounds, seconds, warmUp, signal }: Settings,
  commits: number[],
): Promise<Result[]> {
  await compareAnswers(servers, test)
  for (const server of servers) await load(server, test, { seconds: warmUp, strict: true, signal })
  const entries = servers.map((server) => ({ server, results: [] as Result[] }))
  for (let round = 1; round <= rounds; round++) {
    if (test.creates) commits.push(commitsPerSecond(folder))
    for (const { server, results } of entries) {
      const result = await load(server, test, { seconds, strict: false, signal })
      results.push(result)
      console.error(`${test.id}, round ${round}, ${server.name}: ${figures(result)}`)
    }
  }
  return entries.map(({ results }) => combined(results))
}

/** Throws unless all servers give the same answer to the same request. */
async function compareAnswers(servers: Server[], test: Case): Promise<void> {
  const answers: unknown[] = []
  for (const { name, origin, key, codec } of servers) {
    const request = test.request(repeatable(), codec)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const answer = test.creates
      ? await fetch(`${origin}/v1/pets`, { method: 'POST', headers, body: request })
      : await fetch(origin + request, { headers })
    const text = await answer.text()
    if (answer.status !== test.status) throw new Error(`${name}, ${test.title}: ${text}`)
    const body = JSON.parse(text) as never // each case knows the form of its own answers
    answers.push(test.read(body, codec))
    if (!isDeepStrictEqual(answers.at(-1), answers[0])) {
      throw new Error(`${name}, ${test.title}: another answer than that of ${servers[0]?.name}`)
    }
  }
}

function combined(results: Result[]): Result {
  const sum = (name: keyof Result) => results.reduce((total, result) => total + result[name], 0)
  const sorted = results.map(({ p99 }) => p99).sort((one, other) => one - other)
  const p99 = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  return { requests: sum('requests'), seconds: sum('seconds'), p99 }
}

const perSecond = ({ requests, seconds }: Result) => requests / seconds

const figures = (result: Result) =>
  `${Math.round(perSecond(result)).toLocaleString('en')}/s, p99 ${result.p99.toFixed(1)} ms`

/** The ratio to the first server's, with that one's own requests a second, and the p99. */
function cell(results: Result[], index: number): string {
  const [first, result] = [results[0], results[index]]
  if (!first || !result) return ''
  if (index === 0) return `1.00 = ${figures(first)}`
  const ratio = (perSecond(result) / perSecond(first)).toFixed(2)
  return `${ratio}, p99 ${result.p99.toFixed(1)} ms`
}
