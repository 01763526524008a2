/** The lifetime of Idempotency-Keys, and the regular removal of expired ones. */
import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { until } from '../support/instance.ts'
import { type Service, startService } from '../support/service.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let service: Service
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})
async function start(variables = {}): Promise<void> {
  service = await startService(variables)
  onTestFinished(() => service.stop())
}

const rex = { name: 'Rex', categoryId: 3 }
const create = async (key: string, body: object = rex) => {
  const answer = await service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })
  expect(answer.status).toBe(201)
  return answer.text
}
/** Makes a key this many milliseconds old. */
const age = (key: string, time: number) =>
  service.sql('update idempotency_keys set created_at = ? where key_hash = ?', [
    Date.now() - time,
    hash('sha256', key),
  ])
const nextRound = () => vi.advanceTimersByTime(10 * MINUTE)
const storedKeys = async () => {
  const rows = await service.sql('select key_hash from idempotency_keys order by id')
  return rows.map(({ key_hash }) => key_hash)
}
/** Adds rows that are older than any lifetime. */
async function addOldRows(count: number): Promise<void> {
  const rows = Array.from(
    { length: count },
    (_, index) => `(1, '${String(index).padStart(64, '0')}', 'createPet', '', '-1', ${index})`,
  )
  await service.sql(
    `insert into idempotency_keys
       (api_key_id, key_hash, operation, fingerprint, answer, created_at) values ${rows.join()}`,
  )
}

test.each([
  [{}, 24 * HOUR],
  [{ IDEMPOTENCY_LIFETIME: '2h' }, 2 * HOUR],
])('with %o: a key expires after its lifetime', async (variables, lifetime) => {
  await start(variables)
  const first = await create('key')
  await age('key', lifetime - MINUTE)
  expect(await create('key')).toBe(first)
  await age('key', lifetime + 1_000)
  const bella = { ...rex, name: 'Bella' }
  const second = await create('key', bella)
  expect(second).not.toBe(first)
  // The second request replaced the row of the first one.
  expect(await create('key', bella)).toBe(second)
})

test('each round removes the expired keys only', async () => {
  const lifetime = 24 * HOUR
  await start()
  for (const key of ['old', 'expired', 'fresh']) await create(key)
  const young = await create('young')
  await age('old', 2 * lifetime)
  await age('expired', lifetime + 1_000)
  await age('young', lifetime - MINUTE)
  // A round may still run when the next one is due.
  const expectRounds = (...keys: string[]) =>
    eventually(async () => {
      nextRound()
      expect(await storedKeys()).toEqual(keys.map((key) => hash('sha256', key)))
    })
  await expectRounds('fresh', 'young')
  await create('later')
  await age('later', lifetime + MINUTE)
  await expectRounds('fresh', 'young')
  expect(await create('young')).toBe(young)
})

test('one round removes all expired keys, and a failed round is logged as a warning', async () => {
  await start()
  await create('young')
  await addOldRows(4_001)
  await service.sql('alter table idempotency_keys rename to elsewhere')
  const warnings = () =>
    service.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn')
  vi.advanceTimersByTime(9 * MINUTE)
  await setTimeout(50)
  expect(warnings()).toEqual([])
  vi.advanceTimersByTime(MINUTE)
  await eventually(() =>
    expect(warnings()).toMatchObject([
      {
        msg: 'Could not remove old idempotency keys',
        err: { message: expect.stringContaining('idempotency_keys') },
      },
    ]),
  )
  await service.sql('alter table elsewhere rename to idempotency_keys')
  nextRound()
  await eventually(async () => expect(await storedKeys()).toEqual([hash('sha256', 'young')]))
  expect((await service.rest('GET', '/pets')).status).toBe(200)
})

test('a stop aborts the round', async () => {
  service = await startService()
  await addOldRows(3_000)
  nextRound()
  await eventually(async () => {
    const [row] = await service.sql('select count(*) as count from idempotency_keys')
    expect(Number(row?.count)).toBeLessThan(3_000)
  })
  vi.useRealTimers()
  await service.stop()
  await expectNoWarning()
})

async function expectNoWarning(): Promise<void> {
  await setTimeout(100) // a round that continues would log its error by now
  expect(service.logged.filter((line) => /error|warn/.test(JSON.parse(line).level))).toEqual([])
}

test('calls go on while many keys are removed: there is a pause after each hundred', async () => {
  await start()
  await addOldRows(3_000)
  const begun = performance.now()
  nextRound()
  await until('all are removed', async () => (await storedKeys()).length === 0)
  expect(performance.now() - begun, '30 pauses of 10 ms').toBeGreaterThan(290)
})
