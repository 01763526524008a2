/** A summary of the CPU profile of the service under load. */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Case } from './cases.ts'
import type { Settings } from './compare.ts'
import type { BenchDatabase } from './databases.ts'
import { type Contestant, startServer } from './servers.ts'
import { load } from './wrk.ts'

/** The maximum number of lines of each list. */
const LINES = 30

interface Frame {
  functionName: string
  url: string
  lineNumber: number
}

/** The output of `node --cpu-prof`; times are microseconds of the monotonic clock. */
interface Profile {
  nodes: { id: number; callFrame: Frame }[]
  startTime: number
  samples: number[]
  timeDeltas: number[]
}

/** Profiles a server under one case, and prints the self time by file or package and by function. */
export async function profile(
  contestant: Contestant,
  test: Case,
  database: BenchDatabase,
  { folder, warmUp, seconds, signal }: Settings,
): Promise<void> {
  const kept = mkdtempSync(path.join(tmpdir(), 'petstore-profile-'))
  const flags = [...(contestant.flags ?? []), '--cpu-prof', `--cpu-prof-dir=${kept}`]
  const server = await startServer({ ...contestant, flags }, database, folder)
  let requests: number
  let from: number
  let to: number
  try {
    await load(server, test, { seconds: warmUp, strict: true, signal })
    from = monotonic()
    ;({ requests } = await load(server, test, { seconds, strict: false, signal }))
    to = monotonic()
  } finally {
    await server.stop()
  }
  const file = path.join(kept, readdirSync(kept)[0] ?? '')
  const times = selfTimes(JSON.parse(readFileSync(file, 'utf8')), from, to)

  console.log(`${test.title}: ${requests} requests in ${seconds} s (database ${database.version}).`)
  console.log('Microseconds of the process for each request, by file, package or built-in:\n')
  print(times, requests, place)
  console.log('\nThe same by function:\n')
  print(
    times,
    requests,
    (frame) => `${place(frame)}  ${frame.functionName || 'anonymous'}:${frame.lineNumber + 1}`,
  )
  console.log(`\nThe profile, for the DevTools of Chrome: ${file}`)
}

/** The current time in microseconds, on the clock of the profiles. */
const monotonic = () => Number(process.hrtime.bigint() / 1_000n)

/** The self time of each frame between two times in microseconds, without idle time. */
function selfTimes({ nodes, startTime, samples, timeDeltas }: Profile, from: number, to: number) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const times = new Map<Frame, number>()
  let time = startTime
  for (const [index, id] of samples.entries()) {
    time += timeDeltas[index] ?? 0
    const frame = frames.get(id)
    if (!frame || frame.functionName === '(idle)' || time < from || time > to) continue
    times.set(frame, (times.get(frame) ?? 0) + (timeDeltas[index + 1] ?? 0))
  }
  return times
}

const root = path.join(import.meta.dirname, '..')

/** The file of the service, the package, or the part of Node of a frame. */
function place({ url, functionName }: Frame): string {
  if (url === '') return functionName // V8 and code that is compiled into Node
  if (!url.startsWith('file:')) return url
  const file = path.relative(root, fileURLToPath(url))
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file) ?? []
  return name ?? file
}

/** Prints the sums of times with the same label in descending order. */
function print(times: Map<Frame, number>, requests: number, label: (frame: Frame) => string): void {
  const sums = new Map<string, number>()
  for (const [frame, time] of times) {
    sums.set(label(frame), (sums.get(label(frame)) ?? 0) + time / requests)
  }
  const line = (time: number, text: string) =>
    console.log(`${time.toFixed(2).padStart(9)}  ${text}`)
  const sorted = [...sums].sort(([, one], [, other]) => other - one)
  for (const [text, time] of sorted.slice(0, LINES)) line(time, text)
  const sum = (rows: [string, number][]) => rows.reduce((total, [, time]) => total + time, 0)
  line(sum(sorted.slice(LINES)), 'all others')
  line(sum(sorted), 'together')
}
