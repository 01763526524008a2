/** `--overload`: calls arrive faster than a server can answer, whatever it has answered so far. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Case, repeatable, restCases } from './cases.ts'
import { median, type Settings } from './compare.ts'
import type { BenchDatabase } from './databases.ts'
import { type Contestant, type Server, startServer } from './servers.ts'
import { perSecond, table, whole } from './tables.ts'
import { load } from './wrk.ts'

/** The calls that arrive, as multiples of those that the server answers at most in a closed loop. */
const FACTORS = [1.5, 2.5]

/** The connections of the closed loop; the faster one counts. */
const CLOSED_LOOPS = [32, 200]

/** The calls of one caller on one connection: each awaits the answer to the last, as a browser's do. */
const CALLS = 10

/** Seconds until a caller gives up. */
const PATIENCE = 10

/** Milliseconds between two probes, and within which the server must be back to normal. */
const PROBE_INTERVAL = 5
const PROBE_TIMEOUT = 60_000

/** The number of consecutive probes that are as fast as before. */
const NORMAL = 10

/** The result of one overload. */
interface Arrivals {
  /** Calls answered with 200 per second, and the mean time until an answer in milliseconds. */
  answered: number
  response: number
  /** Answers of 500 to 599, and all others but 200. */
  failed: number
  otherwise: number
  /** Connections that failed or on which the caller gave up. */
  broken: number
  /** The share of callers that could not come, because all connections of httperf were in use. */
  turnedAway: number
  /** Milliseconds from the last arrival until calls take as long as before. */
  recovery: number
}

/** Overloads each server in each round, and returns the table. */
export async function overload(
  contestants: Contestant[],
  openDatabase: (contestant: Contestant) => Promise<BenchDatabase>,
  settings: Settings,
): Promise<string> {
  const [page] = restCases().filter(({ id }) => id === 'page') as [Case] // it is there
  await using running = new AsyncDisposableStack()
  const entries: { server: Server; best: number[]; arrivals: Arrivals[][] }[] = []
  let version = ''
  for (const contestant of contestants) {
    const database = await openDatabase(contestant)
    const server = await startServer(contestant, database, settings.folder)
    running.defer(server.stop)
    entries.push({ server, best: [], arrivals: FACTORS.map(() => []) })
    version = database.version
  }
  const { warmUp, seconds, signal } = settings
  for (const { server } of entries) {
    await load(server, page, { seconds: warmUp, strict: true, signal })
  }
  for (let round = 1; round <= settings.rounds; round++) {
    for (const { server, best, arrivals } of entries) {
      const rates: number[] = []
      for (const connections of CLOSED_LOOPS) {
        const test = { ...page, connections }
        rates.push(perSecond(await load(server, test, { seconds, strict: false, signal })))
      }
      const rate = Math.max(...rates)
      best.push(rate)
      console.error(`round ${round}, ${server.name}: ${whole(rate)}/s in a closed loop`)
      for (const [place, factor] of FACTORS.entries()) {
        const result = await overwhelm(server, page, rate * factor, settings)
        arrivals[place]?.push(result)
        console.error(`round ${round}, ${server.name}, ${factor}: ${JSON.stringify(result)}`)
      }
    }
  }
  const lines = entries.flatMap(({ server, best, arrivals }) =>
    FACTORS.map((factor, place) => {
      const results = arrivals[place] ?? []
      const middle = (of: (result: Arrivals, round: number) => number) =>
        median(results.map(of)) ?? Number.NaN
      const sum = (of: (result: Arrivals) => number) =>
        whole(results.reduce((total, result) => total + of(result), 0))
      const share = middle(({ answered }, round) => answered / (best[round] ?? Number.NaN))
      return [
        server.name,
        `${whole(median(best) ?? Number.NaN)}/s`,
        `× ${factor}`,
        share.toFixed(2),
        `${whole(middle(({ response }) => response))} ms`,
        sum(({ failed }) => failed),
        sum(({ otherwise }) => otherwise),
        sum(({ broken }) => broken),
        `${whole(100 * middle(({ turnedAway }) => turnedAway))} %`,
        `${(Math.max(...results.map(({ recovery }) => recovery)) / 1_000).toFixed(2)} s`,
      ]
    }),
  )
  return [
    `Pages of 20 at random cursors, arriving faster than they are answered (${version}):`,
    table(
      [
        'server',
        'best in a closed loop',
        'arrivals',
        'answered',
        'mean time',
        '5xx',
        'other than 200',
        'broken',
        'turned away',
        'normal again after',
      ],
      lines,
    ),
  ].join('\n\n')
}

/** Lets calls arrive at `rate` a second, for some seconds, and watches the server after that. */
async function overwhelm(
  server: Server,
  page: Case,
  rate: number,
  { seconds, signal }: Settings,
): Promise<Arrivals> {
  const file = path.join(server.folder, 'overload.requests')
  const random = repeatable()
  const paths = Array.from({ length: 20_000 }, () => page.request(random, server.codec).path)
  writeFileSync(file, paths.map((path) => `${path}\0`).join(''))
  const callers = Math.round((rate / CALLS) * seconds)
  using resources = new DisposableStack()
  const agent = resources.adopt(new Agent({ keepAlive: true, maxSockets: 1 }), (agent) =>
    agent.destroy(),
  )
  const usual = await usualTime(server, agent, signal)
  const httperf = promisify(execFile)(
    'httperf',
    [
      ...['--server', '127.0.0.1', '--port', new URL(server.origin).port],
      ...['--rate', String(rate / CALLS), '--num-conns', String(callers)],
      ...['--num-calls', String(CALLS), '--timeout', String(PATIENCE), '--wlog', `y,${file}`],
      ...['--add-header', `Authorization: Bearer ${server.key}\\n`],
    ],
    { signal },
  )
  httperf.catch(() => {}) // awaited below
  await setTimeout(seconds * 1_000, undefined, { signal })
  const recovery = await untilNormal(server, agent, usual, signal)
  const { stdout } = await httperf
  server.emptyLog()
  return { ...readHttperf(stdout, callers), recovery }
}

/** Reads the report of httperf: https://manpages.debian.org/httperf */
function readHttperf(report: string, callers: number): Omit<Arrivals, 'recovery'> {
  const read = (pattern: RegExp) => {
    const [, ...numbers] = pattern.exec(report) ?? []
    if (numbers.length === 0) throw new Error(`httperf reported no ${pattern.source}:\n${report}`)
    return numbers.map(Number) as [number, ...number[]]
  }
  const [duration] = read(/test-duration (\S+) s/)
  const [response] = read(/^Reply time \[ms\]: response (\S+)/m)
  const [ones, twos = 0, threes = 0, fours = 0, failed = 0] = read(
    /^Reply status: 1xx=(\d+) 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)/m,
  )
  const [errors] = read(/^Errors: total (\d+)/m)
  const [unavailable] = read(/^Errors: fd-unavail (\d+)/m)
  return {
    answered: twos / duration,
    response,
    failed,
    otherwise: ones + threes + fours,
    broken: errors - unavailable,
    turnedAway: unavailable / callers,
  }
}

/** A limit for the milliseconds of one call on a server that has nothing else to do. */
async function usualTime(server: Server, agent: Agent, signal: AbortSignal): Promise<number> {
  const times: number[] = []
  for (let probes = 0; probes < 100; probes++, await setTimeout(PROBE_INTERVAL)) {
    times.push((await probe(server, agent, signal)) ?? Number.POSITIVE_INFINITY)
  }
  const sorted = times.toSorted((one, other) => one - other)
  return 2 * (sorted[Math.floor(0.9 * sorted.length)] ?? Number.NaN)
}

/** Milliseconds until the first of ten calls in a row that take no longer than usual. */
async function untilNormal(server: Server, agent: Agent, usual: number, signal: AbortSignal) {
  const start = performance.now()
  let since = start
  for (let normal = 0; normal < NORMAL; await setTimeout(PROBE_INTERVAL)) {
    const sent = performance.now()
    const time = (await probe(server, agent, signal)) ?? Number.POSITIVE_INFINITY
    normal = time <= usual ? normal + 1 : 0
    if (normal === 1) since = sent
    if (sent - start > PROBE_TIMEOUT) return Number.POSITIVE_INFINITY
  }
  return since - start
}

/** Returns the milliseconds of one call; undefined unless it is answered with 200. */
function probe(server: Server, agent: Agent, signal: AbortSignal): Promise<number | undefined> {
  const headers = { Authorization: `Bearer ${server.key}` }
  const start = performance.now()
  return new Promise((resolve) => {
    get(`${server.origin}/v1/pets?limit=20&cursor=1`, { agent, headers, signal }, (answer) => {
      answer.resume()
      answer.on('end', () =>
        resolve(answer.statusCode === 200 ? performance.now() - start : undefined),
      )
      answer.on('error', () => resolve(undefined))
    }).on('error', () => resolve(undefined))
  })
}
