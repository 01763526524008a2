/** The lifetime of Idempotency-Keys, and the regular removal of expired ones. */
import { createHook } from 'node:async_hooks'
import { hash } from 'node:crypto'
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../support/instance.ts'
import { serviceForFile, startService } from '../support/service.ts'

const MINUTE = 60_000
const LIFETIME = 120 * MINUTE

const realNow = Date.now
// The test says when a round begins, and what the clock of the process shows.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: realNow() })
afterAll(() => void vi.useRealTimers())
const service = await serviceForFile({ IDEMPOTENCY_LIFETIME: '2h' })
beforeEach(async () => void (await service.sql('delete from idempotency_keys')))

const rex = { name: 'Rex', categoryId: 3 }
const create = async (key: string, body: object = rex) => {
  const answer = await service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })
  expect(answer.status).toBe(201)
  return answer.text
}
/** Makes a key this many milliseconds old. */
const age = (key: string, time: number) =>
  service.sql('update idempotency_keys set created_at = ? where key_hash = ?', [
    realNow() - time,
    hash('sha256', key),
  ])
const nextRound = () => vi.advanceTimersByTime(10 * MINUTE)
const countKeys = async ({ sql } = service) => {
  const [row] = await sql('select count(*) as count from idempotency_keys')
  return Number(row?.count)
}
/** Adds rows that are older than any lifetime. */
async function addOldRows(count: number, { sql } = service): Promise<void> {
  const rows = Array.from(
    { length: count },
    (_, index) => `(1, '${String(index).padStart(64, '0')}', 'createPet', '', '-1', ${index})`,
  )
  await sql(
    `insert into idempotency_keys
       (api_key_id, key_hash, operation, fingerprint, answer, created_at) values ${rows.join()}`,
  )
}

test('a key expires after its lifetime; the next request with it replaces its row', async () => {
  const first = await create('key')
  await age('key', LIFETIME - MINUTE)
  expect(await create('key')).toBe(first)
  await age('key', LIFETIME + 1)
  const bella = { ...rex, name: 'Bella' }
  const second = await create('key', bella)
  expect(second).not.toBe(first)
  expect(await create('key', bella)).toBe(second)
  expect(await countKeys()).toBe(1)
})

/** Counts the timers of 10 ms that begin until it is disposed. */
function countPauses() {
  const pauses = { count: 0, [Symbol.dispose]: () => void hook.disable() }
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      const { _idleTimeout: time } = resource as { _idleTimeout?: number }
      if (type === 'Timeout' && time === 10) pauses.count++
    },
  }).enable()
  return pauses
}

// However wrong the clock of the process is, that of the database decides.
test.each([-24 * 60 * MINUTE, 24 * 60 * MINUTE])(
  'one round removes all expired keys, no others, and pauses after each hundred; the clock is wrong by %i ms',
  async (wrong) => {
    await create('fresh')
    const young = await create('young')
    await age('young', LIFETIME - MINUTE)
    await create('expired')
    await age('expired', LIFETIME + 1)
    await addOldRows(2_000)
    const now = Date.now()
    vi.setSystemTime(now + wrong)
    onTestFinished(() => void vi.setSystemTime(now))
    vi.advanceTimersByTime(9 * MINUTE)
    using pauses = countPauses()
    nextRound()
    await until('all are removed', async () => (await countKeys()) === 2)
    expect(pauses.count).toBeGreaterThanOrEqual(20)
    expect(await create('young')).toBe(young)
    expect(await countKeys()).toBe(2)
  },
)

test('a failed round is logged as a warning, and the next one removes the keys', async () => {
  await addOldRows(1)
  await service.sql('alter table idempotency_keys rename to elsewhere')
  const warnings = () => service.logged.filter((line) => line.includes('"level":"warn"'))
  nextRound()
  await until('it is logged', () => warnings().length > 0)
  await service.sql('alter table elsewhere rename to idempotency_keys')
  expect(JSON.parse(`${warnings()[0]}`)).toMatchObject({
    msg: 'Could not remove old idempotency keys',
    err: { message: expect.stringContaining('idempotency_keys') },
  })
  nextRound()
  await until('it is removed', async () => (await countKeys()) === 0)
})

test('a stop ends the round, without a warning', async () => {
  const stopped = await startService()
  await addOldRows(3_000, stopped)
  nextRound()
  await until('it has begun', async () => (await countKeys(stopped)) < 3_000)
  await stopped.stop()
  await new Promise((resolve) => setTimeout(resolve, 50)) // a round that continues would log its error
  expect(stopped.logged.filter((line) => /error|warn/.test(JSON.parse(line).level))).toEqual([])
})
