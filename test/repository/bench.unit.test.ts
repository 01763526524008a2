/** The requests and the computations of the benchmark, without load. */
import { expect, test } from 'vitest'
import { blend, costsOf, type Deployment, MIXTURE, walls } from '../../bench/capacity.ts'
import { repeatable, restCases } from '../../bench/cases.ts'
import type { Row, Table } from '../../bench/compare.ts'
import { serviceCodec } from '../../bench/service.ts'
import { markdown } from '../../bench/tables.ts'
import type { Result } from '../../bench/wrk.ts'
import { runToEnd } from '../support/process.ts'

test('--help prints the usage, and so does an unknown case', async () => {
  for (const [args, expected] of [
    [['--help'], 0],
    [['--case', 'getPets'], 1],
  ] as const) {
    const { code, stdout } = await runToEnd('bench/run.ts', {}, [...args])
    expect(code).toBe(expected)
    expect(stdout).toContain('npm run bench -- [OPTIONS]')
  }
})

test('the mixture has 70 % getPet, 20 % pages and 10 % creations', () => {
  const mixture = restCases().find(({ id }) => id === 'mixture')
  const random = repeatable()
  const requests = Array.from({ length: 10_000 }, () => mixture?.request(random, serviceCodec))
  const share = (pattern: RegExp) =>
    requests.filter((request) => pattern.test(`${request?.path}`)).length / 10_000
  expect(share(/pets\/\d+$/)).toBeCloseTo(0.7, 1)
  expect(share(/cursor=\d+$/)).toBeCloseTo(0.2, 1)
  expect(requests.filter((request) => request?.body !== undefined).length).toBeGreaterThan(900)
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

test('a table has ratios, latencies, processor time and memory', () => {
  const text = markdown(tableOf([row('getPet', [SECOND, { ...SECOND, requests: 1_500, p99: 6 }])]))
  for (const line of [
    'REST on MySQL (MariaDB 10.11.1):',
    '| getPet | 1.00 = 1,000/s, p50 2.0 ms, p99 4.0 ms | 1.50, p50 2.0 ms, p99 6.0 ms (× 1.5) |',
    '| getPet | 100 + 50 | 67 + 33 |',
    '| 90, 140 MB | 100, 150 MB |',
  ]) {
    expect(text).toContain(line)
  }
})

test('the lowest limit of a deployment comes first, and changes when its resource grows', () => {
  const measured = tableOf([
    row('getPet', [SECOND, { ...SECOND, statements: 500 }]),
    row('page', [SECOND, { ...SECOND, service: 0.2, database: 0.1, bytes: 2_000_000 }]),
    row('createPet', [SECOND, { ...SECOND, statements: 250, inserts: 250 }], { commits: 2_000 }),
    row('alone.getPet', [SECOND, { ...SECOND, p50: 0.3 }]),
    row('alone.listPets', [SECOND, { ...SECOND, p50: 0.5 }]),
    row('alone.createPet', [SECOND, { ...SECOND, p50: 0.9, inserts: 1_000 }]),
  ])
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
  const mixture = blend(costsOf(measured, 1), MIXTURE)
  const first = (more: Partial<Deployment>) => walls(mixture, { ...deployment, ...more })[0]
  expect(first({})).toMatchObject({ wall: 'process' })
  expect(first({})?.rate).toBeCloseTo(1 / 0.000_12, 3)
  expect(first({ processes: 64 })).toMatchObject({ wall: 'service' })
  expect(first({ processes: 64, serviceCores: 64 })).toMatchObject({ wall: 'commits' })
})
