/**
 * How many cores, processes and connections a number of calls a second takes, which limit comes first,
 * and what then helps: the model of docs/capacity.md, computed from what the benchmark measured.
 */
import type { Table } from './compare.ts'
import { perSecond, table, whole } from './tables.ts'
import type { Result } from './wrk.ts'

/** What one call takes; of a mixture, the mean. */
export interface Cost {
  /** Seconds of processor time: of the service, of the database, and of what sends the calls. */
  service: number
  database: number
  load: number
  /** Bytes of the answer, with its head. */
  bytes: number
  /** Statements sent to the database; concurrent calls share some of them. */
  statements: number
  /** Inserts committed. */
  commits: number
  /** The database's seconds and the commits of a call that shares no statement with others. */
  databaseAlone: number
  commitsAlone: number
  /** Seconds for which the call holds a connection to the database. */
  hold: number
  /** Seconds from request to answer, where nothing else is asked. */
  latency: number
}

/** A kind of call: its row under load, and its row when one connection asks alone. */
const KINDS = {
  getPet: { row: 'getPet', alone: 'alone.getPet' },
  page: { row: 'page', alone: 'alone.listPets' },
  createPet: { row: 'createPet', alone: 'alone.createPet' },
}

type Kind = keyof typeof KINDS

/** The share of each kind of call; they sum up to 1. */
export type Mixture = Partial<Record<Kind, number>>

/** Seven of ten calls get a pet, two list a page, and one creates. */
export const MIXTURE: Mixture = { getPet: 0.7, page: 0.2, createPet: 0.1 }

/** What a call of each kind takes on a server of a table. Throws where the table lacks a case. */
export function costsOf({ rows }: Pick<Table, 'rows'>, server: number): Record<Kind, Cost> {
  const resultOf = (id: string): Result => {
    const result = rows.find((row) => row.id === id)?.results.at(server)
    if (!result) throw new Error(`The capacity needs the case ${id} on MySQL: measure it, too`)
    return result
  }
  const costOf = (kind: Kind) => cost(resultOf(KINDS[kind].row), resultOf(KINDS[kind].alone))
  return { getPet: costOf('getPet'), page: costOf('page'), createPet: costOf('createPet') }
}

function cost(loaded: Result, alone: Result): Cost {
  const perCall = (name: keyof Result) => loaded[name] / loaded.requests
  const statements = perCall('statements')
  // What is left of a call that nothing delays is the statement: its way, its work, its commit.
  const latency = alone.p50 / 1e3
  const own = (alone.service + alone.load) / alone.requests
  const statement = Math.max(latency - own, alone.database / alone.requests)
  return {
    service: perCall('service'),
    database: perCall('database'),
    load: perCall('load'),
    bytes: perCall('bytes'),
    statements,
    commits: perCall('inserts'),
    databaseAlone: alone.database / alone.requests,
    commitsAlone: alone.inserts / alone.requests,
    hold: statements * statement,
    latency,
  }
}

/** The mean cost of a mixture's calls. */
export function blend(costs: Record<Kind, Cost>, mixture: Mixture): Cost {
  const mean = (name: keyof Cost) =>
    Object.entries(mixture).reduce(
      // The keys of a mixture are kinds.
      (total, [kind, share]) => total + share * costs[kind as Kind][name],
      0,
    )
  return {
    service: mean('service'),
    database: mean('database'),
    load: mean('load'),
    bytes: mean('bytes'),
    statements: mean('statements'),
    commits: mean('commits'),
    databaseAlone: mean('databaseAlone'),
    commitsAlone: mean('commitsAlone'),
    hold: mean('hold'),
    latency: mean('latency'),
  }
}

/** What calls are served with. */
export interface Deployment {
  /** Serving processes: WORKERS × instances. */
  processes: number
  /** Connections to the database of each process. */
  pool: number
  /** Cores of all machines that the service runs on, and of the database's. */
  serviceCores: number
  databaseCores: number
  /** Whether the service, the database and the load share the cores of the service, as in the benchmark. */
  isShared: boolean
  /** Commits a second of the database's disk. */
  commits: number
  /** Bytes a second of the network to the callers. */
  network: number
  /** Seconds from the service to the database and back, beyond those in the measured figures. */
  roundTrip: number
}

export type Wall = 'process' | 'service' | 'database' | 'pool' | 'commits' | 'network'

/** The calls a second at which each limit is reached, the first one first. */
export function walls(call: Cost, deployment: Deployment): { wall: Wall; rate: number }[] {
  const { processes, pool, serviceCores, databaseCores, isShared } = deployment
  const together = call.service + call.database + call.load
  const rates: Record<Wall, number> = {
    process: processes / call.service,
    service: serviceCores / (isShared ? together : call.service),
    database: isShared ? Number.POSITIVE_INFINITY : databaseCores / call.database,
    pool: (processes * pool) / (call.hold + call.statements * deployment.roundTrip),
    commits: deployment.commits / call.commits,
    network: deployment.network / call.bytes,
  }
  return Object.entries(rates)
    .map(([wall, rate]) => ({ wall: wall as Wall, rate })) // the keys are those of `rates`
    .sort((one, other) => one.rate - other.rate)
}

/** What the machines of the tables are taken to be. Each may be another one where you run the service. */
export const ASSUMED = {
  /** The part of a limit that is used at most, so that calls do not queue for long. */
  utilization: 0.7,
  pool: 10,
  instanceCores: 8,
  databaseCores: 32,
  /** Bytes of memory that the database keeps pets in. */
  memory: 96e9,
  /** Pages of 16 KB that its disk reads a second. */
  diskReads: 100_000,
  maxConnections: 5_000,
  /** Ten gigabits a second. */
  network: 10e9 / 8,
  roundTrip: 0.000_3,
}

const range = (one: number, other: number, of: (each: number) => number): [number, number] => [
  of(Math.min(one, other)),
  of(Math.max(one, other)),
]

/** What a number of calls a second takes. */
export function needs(call: Cost, rate: number, assumed = ASSUMED) {
  const { utilization, pool, instanceCores, roundTrip } = assumed
  const processes = Math.ceil((rate * call.service) / utilization)
  return {
    processes,
    instances: Math.ceil(processes / instanceCores),
    /** With as many shared statements as measured, and with none. */
    databaseCores: range(call.database, call.databaseAlone, (each) =>
      Math.ceil((rate * each) / utilization),
    ),
    connections: processes * pool,
    /** Connections that are in use at a time, on average. */
    used: rate * (call.hold + call.statements * roundTrip),
    commits: range(call.commits, call.commitsAlone, (each) => rate * each),
    bitsPerSecond: rate * call.bytes * 8,
    /** Calls in progress: connections from callers, where each waits for its answer. */
    concurrent: rate * (call.latency + call.statements * roundTrip),
  }
}

/** Leaf pages of the index that a call reads, which differ from call to call; a creation's are the last. */
const LEAVES: Record<Kind, number> = { getPet: 1, page: 1.2, createPet: 0 }

/** What a number of pets takes: bytes, the part outside of memory, and the calls that the disk allows. */
export function storage(bytesPerPet: number, pets: number, mixture: Mixture, assumed = ASSUMED) {
  const bytes = pets * bytesPerPet
  const outside = Math.max(0, 1 - assumed.memory / bytes)
  const leaves = Object.entries(mixture).reduce(
    (total, [kind, share]) => total + share * LEAVES[kind as Kind], // the keys are kinds
    0,
  )
  return { bytes, outside, rate: (assumed.utilization * assumed.diskReads) / (outside * leaves) }
}

const HELP: Record<Wall | 'connections' | 'disk', [limit: string, help: string]> = {
  process: ['one process', '`WORKERS`, up to the number of cores'],
  service: ['the cores of one instance', 'more instances'],
  database: [
    'the cores of the database',
    'reads from other nodes; then another engine, which splits the table',
  ],
  pool: [
    'the connections of one process',
    'a larger pool, more processes, a database that is nearer',
  ],
  commits: [
    'the commits of the database’s disk',
    'a faster disk; then another engine, which commits on many',
  ],
  network: ['the network to the callers', 'smaller pages, more sites'],
  connections: [
    'the database’s `max_connections`',
    'smaller pools, a proxy that shares connections, other nodes',
  ],
  disk: ['reads of the database’s disk', 'more memory, other nodes, another engine'],
}

/** The tables of docs/capacity.md from the measured table of MySQL; `server` is the service's place in it. */
export function capacityMarkdown(measured: Table, server: number, assumed = ASSUMED): string {
  const costs = costsOf(measured, server)
  const mean = blend(costs, MIXTURE)
  const creation = measured.rows.find(({ id }) => id === 'createPet')
  const commits = creation?.commits ?? Number.NaN
  const micro = (seconds: number) => whole(seconds * 1e6)
  const kinds = [...Object.entries(costs), ['mixture', mean] as const]

  const { utilization, pool, instanceCores, databaseCores, network, roundTrip } = assumed
  const one = walls(mean, {
    processes: 1,
    pool,
    serviceCores: instanceCores,
    databaseCores,
    isShared: false,
    commits,
    network,
    roundTrip,
  }).map(({ wall, rate }) => ({ wall: wall as keyof typeof HELP, rate: rate * utilization }))
  const processes = assumed.maxConnections / pool
  one.push({ wall: 'connections', rate: (processes * utilization) / mean.service })
  one.sort((left, right) => left.rate - right.rate)

  return [
    'What one call takes:',
    table(
      [
        'call',
        'service, µs',
        'database, µs (alone)',
        'connection held, µs',
        'statements',
        'commits',
        'bytes',
      ],
      kinds.map(([kind, call]) => [
        kind,
        micro(call.service),
        `${micro(call.database)} (${micro(call.databaseAlone)})`,
        micro(call.hold),
        call.statements.toFixed(2),
        call.commits.toFixed(3),
        whole(call.bytes),
      ]),
    ),
    `The limits of the mixture, at ${whole(utilization * 100)} % of each, the first one first:`,
    table(
      ['limit', 'calls a second', 'what helps'],
      one.map(({ wall, rate }) => [HELP[wall][0], whole(rate), HELP[wall][1]]),
    ),
    'What the mixture takes:',
    table(
      [
        'calls a second',
        'processes',
        `instances of ${instanceCores} cores`,
        'cores of the database',
        'connections (used at a time)',
        'commits a second',
        'megabits a second',
        'calls in progress',
      ],
      [1e3, 1e4, 1e5, 1e6].map((rate) => {
        const need = needs(mean, rate, assumed)
        return [
          whole(rate),
          whole(need.processes),
          whole(need.instances),
          need.databaseCores.map(whole).join(' – '),
          `${whole(need.connections)} (${whole(need.used)})`,
          need.commits.map(whole).join(' – '),
          whole(need.bitsPerSecond / 1e6),
          whole(need.concurrent),
        ]
      }),
    ),
    `What pets take, with ${whole(assumed.memory / 1e9)} GB of memory in the database:`,
    table(
      ['pets', 'GB', 'outside of memory', 'calls a second that the disk allows'],
      [1e5, 1e7, 1e8, 1e9, 1e10].map((pets) => {
        const { bytes, outside, rate } = storage(measured.bytesPerPet, pets, MIXTURE, assumed)
        const size = (bytes / 1e9).toPrecision(2)
        return [
          whole(pets),
          whole(Number(size)) === '0' ? size : whole(Number(size)),
          `${whole(outside * 100)} %`,
          whole(rate),
        ]
      }),
    ),
    `Where the disk is the limit, these help: ${HELP.disk[1]}.`,
  ].join('\n\n')
}

/** Calls a second of a measured result beside what the model says of the same deployment. */
export function check(predicted: Cost, deployment: Deployment, measured: Result) {
  const [first] = walls(predicted, deployment)
  if (!first) throw new Error('A deployment has limits')
  const rate = perSecond(measured)
  return { ...first, measured: rate, ratio: rate / first.rate }
}
