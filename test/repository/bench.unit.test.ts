/** The requests, computations and output of the benchmark, without load. */
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  blend,
  type Cost,
  capacityMarkdown,
  check,
  costsOf,
  type Deployment,
  MIXTURE,
  needs,
  storage,
  walls,
} from '../../bench/capacity.ts'
import { repeatable, restCases } from '../../bench/cases.ts'
import type { Row, Table } from '../../bench/compare.ts'
import { fillDatabase, growDatabase } from '../../bench/databases.ts'
import { deepCases, deepMarkdown } from '../../bench/deep.ts'
import { parseStat, processorTime } from '../../bench/processes.ts'
import { serviceCodec } from '../../bench/service.ts'
import { markdown } from '../../bench/tables.ts'
import type { Result } from '../../bench/wrk.ts'
import { newFolder, runToEnd } from '../support/process.ts'

test('--help prints the usage', async () => {
  const { code, stdout } = await runToEnd('bench/run.ts', {}, ['--help'])
  expect(code).toBe(0)
  expect(stdout).toContain('npm run bench -- [OPTIONS]')
})

test.each([
  ['--case', 'getPets'],
  ['--only', 'oracle'],
  ['--seconds', '0'],
  ['--pets', '150000'],
])('%s %s fails with the usage', async (...args) => {
  const { code, stdout } = await runToEnd('bench/run.ts', {}, args)
  expect(code).toBe(1)
  expect(stdout).toContain('npm run bench -- [OPTIONS]')
})

describe('requests', () => {
  const requestsOf = (id: string, count: number) => {
    const random = repeatable()
    const found = [...restCases(), ...deepCases(1_000_000)].find((test) => test.id === id)
    if (!found) throw new Error(`There is no case ${id}`)
    return Array.from({ length: count }, () => found.request(random, serviceCodec))
  }

  test('the mixture has 70 % getPet, 20 % pages and 10 % creations', () => {
    const requests = requestsOf('mixture', 10_000)
    const share = (pattern: RegExp) =>
      requests.filter(({ path }) => pattern.test(path)).length / 10_000
    expect(share(/pets\/\d+$/)).toBeCloseTo(0.7, 1)
    expect(share(/cursor=\d+$/)).toBeCloseTo(0.2, 1)
    expect(requests.filter(({ body }) => body !== undefined).length / 10_000).toBeCloseTo(0.1, 1)
  })

  test('pages at random cursors rarely repeat', () => {
    for (const id of ['page', 'filteredPage']) {
      const paths = requestsOf(id, 1_000).map(({ path }) => path)
      expect(new Set(paths).size).toBeGreaterThan(900)
    }
  })

  test('the cursors of deep pages are near the beginning, the middle and the end', () => {
    const cursors = (place: string) =>
      requestsOf(`deep.pending.${place}`, 100).map(({ path }) =>
        Number(/cursor=(\d+)/.exec(path)?.[1]),
      )
    expect(Math.max(...cursors('beginning'))).toBeLessThan(10_000)
    expect(Math.min(...cursors('middle'))).toBeGreaterThanOrEqual(500_000)
    expect(Math.max(...cursors('middle'))).toBeLessThan(510_000)
    expect(Math.min(...cursors('end'))).toBeGreaterThanOrEqual(980_000)
  })
})

test('growDatabase fills up to the number of pets, also after creations', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  const database = await fillDatabase(`sqlite:${path.join(folder, 'petstore.db')}`)
  const { sql } = database
  onTestFinished(sql.close)
  expect(database.bytesPerPet).toBeGreaterThan(20)
  await sql(`insert into pets (name, category_id, status) values ('Rex', 1, 'sold')`)
  await growDatabase(database, 200_000)
  const rows = await sql(
    'select status, count(*) as count, max(id) as last from pets group by status order by status',
  )
  expect(rows.map(({ status }) => status)).toEqual(['available', 'pending', 'sold'])
  expect(rows.reduce((total, { count }) => total + Number(count), 0)).toBe(200_000)
  expect(rows[0]?.last).toBeGreaterThan(199_900n)
  expect(rows[1]).toMatchObject({ count: 1n })
})

describe('processes', () => {
  test('parseStat accepts a process name that looks like fields', () => {
    const fields = `S 7 ${Array.from({ length: 9 }, () => 0).join(' ')} 250 50 0 0`
    const line = `42 (a) R 1 (b)) ${fields}`
    expect(parseStat(line)).toEqual({ pid: 42, parent: 7, seconds: 3 })
  })

  test.runIf(process.platform === 'linux')(
    'processorTime grows with the work of the process',
    () => {
      const before = processorTime(process.pid)
      for (const end = performance.now() + 100; performance.now() < end; );
      expect(processorTime(process.pid)).toBeGreaterThan(before)
      expect(processorTime(2 ** 30)).toBeNaN()
    },
  )
})

const SECOND: Result = {
  requests: 1_000,
  seconds: 1,
  p50: 2,
  p99: 4,
  bytes: 500_000,
  service: 0.1,
  database: 0.05,
  load: 0.01,
  statements: 1_000,
  inserts: 0,
}

const row = (id: string, results: Result[], more: Partial<Row> = {}): Row => ({
  id,
  title: id,
  connections: 32,
  isEqual: false,
  commits: undefined,
  results,
  ...more,
})

const tableOf = (rows: Row[]): Table => ({
  id: 'mysql',
  title: 'REST on MySQL',
  version: 'MariaDB 10.11.1',
  bytesPerPet: 100,
  servers: [
    { name: 'by hand', sharesEqual: false, memory: { idle: 90e6, most: 140e6 } },
    { name: 'service', sharesEqual: true, memory: { idle: 100e6, most: 150e6 } },
  ],
  rows,
})

const lineOf = (text: string, title: string) =>
  text.split('\n').find((line) => line.startsWith(`| ${title}`))

describe('tables', () => {
  const faster = { ...SECOND, requests: 1_500, p99: 6 }

  test('a table has ratios, latencies, processor time and memory', () => {
    const text = markdown(tableOf([row('getPet', [SECOND, faster])]))
    expect(text).toContain('REST on MySQL (MariaDB 10.11.1):')
    expect(lineOf(text, 'getPet')).toBe(
      '| getPet | 1.00 = 1,000/s, p50 2.0 ms, p99 4.0 ms | 1.50, p50 2.0 ms, p99 6.0 ms (× 1.5) |',
    )
    expect(text).toContain('| getPet | 100 + 50 | 67 + 33 |')
    expect(lineOf(text, 'resident memory')).toContain('| 90, 140 MB | 100, 150 MB |')
    expect(text).not.toContain('†')
  })

  test('results with shared equal requests are marked with †', () => {
    const text = markdown(
      tableOf([
        row('equal', [SECOND, faster], { isEqual: true }),
        row('alone', [SECOND, faster], { isEqual: true, connections: 1 }),
      ]),
    )
    expect(lineOf(text, 'equal')).toMatch(/1\.00 = [^†]*\| 1\.50 †/)
    expect(lineOf(text, 'alone')).not.toContain('†')
    expect(text).toMatch(/^†: reached only by answering equal questions once/m)
  })

  test('creations show the commits of the disk; an embedded database has no processor time', () => {
    const embedded = { ...SECOND, database: 0 }
    const text = markdown(tableOf([row('createPet', [embedded, embedded], { commits: 1_234 })]))
    expect(lineOf(text, 'createPet (')).toContain('(this disk: 1,234 commits/s)')
    expect(text).toContain('| createPet | 100 | 100 |')
  })

  test('an unknown processor time is a dash', () => {
    const unknown = { ...SECOND, service: Number.NaN, database: Number.NaN }
    expect(markdown(tableOf([row('getPet', [unknown, unknown])]))).toContain('| – + – |')
  })

  test('deep pages are compared with the page at the beginning', () => {
    const rows = deepCases(1_000_000).map(({ id }) => {
      const p50 = id.endsWith('middle') ? 15 : 1
      return row(id, [{ ...SECOND, p50 }, SECOND])
    })
    const text = deepMarkdown(tableOf(rows))
    expect(text).toContain(
      '| all | by hand | 1.00 ms (× 1.0), 50 µs | 15.00 ms (× 15.0), 50 µs | 1.00 ms (× 1.0), 50 µs |',
    )
  })
})

describe('capacity', () => {
  // Invented figures of a realistic magnitude.
  const measured = tableOf([
    row('getPet', [SECOND, { ...SECOND, statements: 500 }]),
    row('page', [SECOND, { ...SECOND, service: 0.2, database: 0.1, bytes: 2_000_000 }]),
    row('createPet', [SECOND, { ...SECOND, statements: 250, inserts: 250 }], { commits: 2_000 }),
    row('alone.getPet', [SECOND, { ...SECOND, p50: 0.3 }]),
    row('alone.listPets', [SECOND, { ...SECOND, p50: 0.5 }]),
    row('alone.createPet', [SECOND, { ...SECOND, p50: 0.9, inserts: 1_000 }]),
  ])
  const costs = costsOf(measured, 1)
  const mixture = blend(costs, MIXTURE)
  const deployment: Deployment = {
    processes: 1,
    pool: 10,
    serviceCores: 8,
    databaseCores: 8,
    isShared: false,
    commits: 2_000,
    network: 1e9,
    roundTrip: 0,
  }

  test('costsOf computes the cost of a call from its measurement', () => {
    expect(costs.createPet).toMatchObject({ service: 0.000_1, database: 0.000_05, bytes: 500 })
    expect(costs.createPet).toMatchObject({ statements: 0.25, commits: 0.25, commitsAlone: 1 })
    // 0.9 ms alone, minus 0.11 ms of the service and the load; a quarter of a statement.
    expect(costs.createPet.hold).toBeCloseTo((0.000_9 - 0.000_11) / 4, 9)
  })

  test('the cost of a mixture is the mean of its calls', () => {
    expect(mixture.service).toBeCloseTo(0.000_12, 9)
    expect(mixture.bytes).toBeCloseTo(0.8 * 500 + 0.2 * 2_000, 9)
    expect(mixture.commits).toBeCloseTo(0.025, 9)
  })

  test('the lowest limit comes first, and changes when its resource grows', () => {
    const first = (more: Partial<Deployment>) => walls(mixture, { ...deployment, ...more })[0]
    expect(first({})).toMatchObject({ wall: 'process' })
    expect(first({})?.rate).toBeCloseTo(1 / 0.000_12, 3)
    expect(first({ processes: 64 })).toMatchObject({ wall: 'service' })
    expect(first({ processes: 64, serviceCores: 64 })).toMatchObject({ wall: 'commits' })
    expect(first({ processes: 64, serviceCores: 64, commits: 1e6 })).toMatchObject({
      wall: 'database',
    })
    expect(first({ pool: 1, roundTrip: 0.01 })).toMatchObject({ wall: 'pool' })
    expect(first({ network: 1e3 })).toMatchObject({ wall: 'network' })
  })

  test('on one machine the service, the database and the load share the cores', () => {
    const both = { ...deployment, processes: 2, serviceCores: 2, isShared: true, commits: 1e9 }
    const [wall] = walls(costs.getPet, both)
    expect(wall?.wall).toBe('service')
    expect(wall?.rate).toBeCloseTo(2 / 0.000_16, 3)
    expect(check(costs.getPet, both, { ...SECOND, requests: 6_250 }).ratio).toBeCloseTo(0.5, 6)
  })

  test('ten times the calls need ten times the resources', () => {
    const [few, many] = [needs(mixture, 1e5), needs(mixture, 1e6)]
    expect(few.processes).toBe(Math.ceil((1e5 * 0.000_12) / 0.7))
    expect(many.processes / few.processes).toBeCloseTo(10, 0)
    expect(many.used / few.used).toBeCloseTo(10, 6)
    // From shared commits to one for each creation.
    expect(many.commits[0]).toBeCloseTo(25_000, 3)
    expect(many.commits[1]).toBeCloseTo(100_000, 3)
  })

  test('pets beyond the memory are read from the disk', () => {
    expect(storage(100, 1e5, MIXTURE)).toMatchObject({ outside: 0, rate: Number.POSITIVE_INFINITY })
    const { bytes, outside, rate } = storage(192, 1e9, MIXTURE)
    expect(bytes).toBe(192e9)
    expect(outside).toBe(0.5)
    expect(rate).toBeCloseTo((0.7 * 100_000) / (0.5 * 0.94), 3)
  })

  test('the tables reach a million calls a second and a billion pets', () => {
    const text = capacityMarkdown(measured, 1)
    expect(text).toMatch(/^\| 1,000,000 \|/m)
    expect(text).toMatch(/^\| 1,000,000,000 \| 100 \| 4 % \|/m)
    expect(text).toMatch(/^\| one process \| 5,833 \| more processes/m)
  })

  test('costsOf throws the name of a case that was not measured', () => {
    expect(() => costsOf(tableOf([]), 1)).toThrow('getPet')
    const never: Partial<Cost> = blend(costs, {})
    expect(never.service).toBe(0)
  })
})
