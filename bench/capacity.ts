/**
 * The cores, processes and connections that a rate of calls requires, the limit that comes first, and
 * its remedy: the model of docs/capacity.md, computed from the results of the benchmark.
 */
import type { Table } from './compare.ts'
import { perSecond, table, whole } from './tables.ts'
import type { Result } from './wrk.ts'

/** The cost of one call, or the mean cost of a mixture. */
export interface Cost {
  /** Seconds of processor time of the service, the database, and the load generator. */
  service: number
  database: number
  load: number
  /** Bytes of the response, with its headers. */
  bytes: number
  /** Statements on the database; concurrent calls share some of them. */
  statements: number
  /** Inserts committed. */
  commits: number
  /** Seconds of the database and commits of a call that shares no statement. */
  databaseAlone: number
  commitsAlone: number
  /** Seconds during which the call uses a connection to the database. */
  hold: number
  /** Seconds from request to response without other load. */
  latency: number
}

/** A kind of call: its row under load, and its row with a single connection. */
const KINDS = {
  getPet: { row: 'getPet', alone: 'alone.getPet' },
  page: { row: 'page', alone: 'alone.listPets' },
  createPet: { row: 'createPet', alone: 'alone.createPet' },
}

type Kind = keyof typeof KINDS

/** The share of each kind of call; the sum is 1. */
export type Mixture = Partial<Record<Kind, number>>

/** Seven of ten calls get a pet, two list a page, and one creates a pet. */
export const MIXTURE: Mixture = { getPet: 0.7, page: 0.2, createPet: 0.1 }

/** The cost of each kind of call on a server of a table. Throws if the table lacks a case. */
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
  // The rest of an undelayed call is the statement: its round trip, its execution and its commit.
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

/** The mean cost of the calls of a mixture. */
export function blend(costs: Record<Kind, Cost>, mixture: Mixture): Cost {
  const mean = (name: keyof Cost) =>
    Object.entries(mixture).reduce(
      // Object.entries returns strings.
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

/** The processes and machines of an installation. */
export interface Deployment {
  /** Serving processes: of all machines. */
  processes: number
  /** Connections of each process to the database. */
  pool: number
  /** Cores of all machines of the service, and of those of the database. */
  serviceCores: number
  databaseCores: number
  /** Whether service, database and load generator share these cores, as in the benchmark. */
  isShared: boolean
  /** Commits per second of the disk of the database. */
  commits: number
  /** Bytes per second of the network to the callers. */
  network: number
  /** Additional seconds of a round trip to the database, beyond the measured figures. */
  roundTrip: number
}

export type Wall = 'process' | 'service' | 'database' | 'pool' | 'commits' | 'network'

/** The calls per second at which each limit is reached, in ascending order. */
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

/** The assumed machines of the tables. Yours may differ in each value. */
export const ASSUMED = {
  /** The maximum share of a limit that is used, so that calls do not queue for long. */
  utilization: 0.7,
  pool: 10,
  instanceCores: 8,
  databaseCores: 32,
  /** Bytes of memory in which the database caches pets. */
  memory: 96e9,
  /** Pages of 16 KB that its disk reads per second. */
  diskReads: 100_000,
  maxConnections: 5_000,
  /** Ten gigabits per second. */
  network: 10e9 / 8,
  roundTrip: 0.000_3,
}

const range = (one: number, other: number, of: (each: number) => number): [number, number] => [
  of(Math.min(one, other)),
  of(Math.max(one, other)),
]

/** The requirements of a rate of calls. */
export function needs(call: Cost, rate: number, assumed = ASSUMED) {
  const { utilization, pool, instanceCores, roundTrip } = assumed
  const processes = Math.ceil((rate * call.service) / utilization)
  return {
    processes,
    instances: Math.ceil(processes / instanceCores),
    /** With the measured share of shared statements, and without shared ones. */
    databaseCores: range(call.database, call.databaseAlone, (each) =>
      Math.ceil((rate * each) / utilization),
    ),
    connections: processes * pool,
    /** The average number of connections in use. */
    used: rate * (call.hold + call.statements * roundTrip),
    commits: range(call.commits, call.commitsAlone, (each) => rate * each),
    bitsPerSecond: rate * call.bytes * 8,
    /** Calls in progress, which are connections of callers that wait for a response. */
    concurrent: rate * (call.latency + call.statements * roundTrip),
  }
}

/** Leaf pages of the index that a call reads at random; a creation uses the last ones. */
const LEAVES: Record<Kind, number> = { getPet: 1, page: 1.2, createPet: 0 }

/** The requirements of a number of pets: bytes, the share outside memory, and the calls of the disk. */
export function storage(bytesPerPet: number, pets: number, mixture: Mixture, assumed = ASSUMED) {
  const bytes = pets * bytesPerPet
  const outside = Math.max(0, 1 - assumed.memory / bytes)
  const leaves = Object.entries(mixture).reduce(
    (total, [kind, share]) => total + share * LEAVES[kind as Kind], // Object.entries returns strings
    0,
  )
  return { bytes, outside, rate: (assumed.utilization * assumed.diskReads) / (outside * leaves) }
}

const HELP: Record<Wall | 'connections' | 'disk', [limit: string, help: string]> = {
  process: ['one process', 'more processes, up to the number of cores'],
  service: ['the cores of one instance', 'more instances'],
  database: [
    'the cores of the database',
    'reads from other nodes; then another engine, which splits the table',
  ],
  pool: [
    'the connections of one process',
    'a larger pool (`DATABASE_POOL_SIZE`), more processes, a database that is nearer',
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

/** The tables of docs/capacity.md from the results on MySQL; `server` is the index of the service. */
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
    `The limits of the mixture, at ${whole(utilization * 100)} % of each, in the order in which they are reached:`,
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

/** Measured calls per second beside the prediction of the model for the same deployment. */
export function check(predicted: Cost, deployment: Deployment, measured: Result) {
  const [first] = walls(predicted, deployment)
  if (!first) throw new Error('A deployment has limits')
  const rate = perSecond(measured)
  return { ...first, measured: rate, ratio: rate / first.rate }
}
