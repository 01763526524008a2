/** `--overload`, its second table: one caller sends batches without a pause, and others come meanwhile. */
import { Agent, get, type RequestOptions } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { PETS, repeatable } from './cases.ts'
import type { Settings } from './compare.ts'
import type { BenchDatabase } from './databases.ts'
import { type Contestant, type Server, startServer } from './servers.ts'
import { table, whole } from './tables.ts'

/** The connections of the caller. */
const CONNECTIONS = [250, 400]

/** The calls of a batch, the most that the service takes. */
const CALLS = 20

/** Milliseconds between two others, each of whom opens a connection. */
const INTERVAL = 50

/** What others meet: their milliseconds, and the number that is not answered with 200. */
interface Met {
  times: number[]
  refused: number
}

/** Floods each server, and returns the table. */
export async function flood(
  contestants: Contestant[],
  openDatabase: (contestant: Contestant) => Promise<BenchDatabase>,
  settings: Settings,
): Promise<string> {
  const lines: string[][] = []
  for (const contestant of contestants) {
    const server = await startServer(contestant, await openDatabase(contestant), settings.folder)
    for (const connections of CONNECTIONS) {
      await floodOnce(server, connections, 2) // a warm-up
      const { batches, refused, health, others } = await floodOnce(server, connections, 9)
      const max = ({ times }: Met) => `${whole(Math.max(...times))} ms`
      const counts = [whole(batches / 9), whole(refused), max(health), max(others)]
      lines.push([server.name, String(connections), ...counts, String(others.refused)])
    }
    await server.stop()
  }
  return [
    `One caller sends batches of ${CALLS} getPet, one after another on each connection; others open a connection:`,
    table(
      [
        ...['server', 'connections', 'batches/s', 'batches refused', '/healthz, at most'],
        ...['getPet of others, at most', 'refused'],
      ],
      lines,
    ),
  ].join('\n\n')
}

async function floodOnce(server: Server, connections: number, seconds: number) {
  const random = repeatable()
  using resources = new DisposableStack()
  const agent = resources.adopt(new Agent({ keepAlive: true }), (agent) => agent.destroy())
  const end = performance.now() + seconds * 1_000
  let batches = 0
  let refused = 0
  const lasts = async (act: () => Promise<unknown>) => {
    while (performance.now() < end) await act()
  }
  const senders = Array.from({ length: connections }, () =>
    lasts(async () => {
      if (await isAnswered(server, { agent, path: batchOf(server, random) })) batches++
      else refused++
    }),
  )
  const health: Met = { times: [], refused: 0 }
  const others: Met = { times: [], refused: 0 }
  await setTimeout(1_000) // the flood is under way
  const meet = (met: Met, path: () => string) =>
    lasts(async () => {
      const start = performance.now()
      if (!(await isAnswered(server, { agent: false, path: path() }))) met.refused++
      met.times.push(performance.now() - start)
      await setTimeout(INTERVAL)
    })
  await Promise.all([
    ...senders,
    meet(health, () => '/healthz'),
    meet(others, () => `/v1/pets/${1 + random(PETS)}`),
  ])
  server.emptyLog()
  return { batches, refused, health, others }
}

function batchOf({ codec }: Server, random: (below: number) => number): string {
  const inputs = Array.from({ length: CALLS }, () => codec.encode({ petId: 1 + random(PETS) }))
  const input = encodeURIComponent(JSON.stringify(Object.fromEntries(inputs.entries())))
  return `/trpc/${inputs.map(() => 'getPet')}?batch=1&input=${input}`
}

/** Whether a request is answered with 200. */
function isAnswered({ origin, key }: Server, options: RequestOptions): Promise<boolean> {
  const headers = { Authorization: `Bearer ${key}` }
  return new Promise((resolve) => {
    get(origin, { ...options, headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode === 200))
      answer.on('error', () => resolve(false))
    }).on('error', () => resolve(false))
  })
}
