/** API keys in each request: the cost of a look-up, expiry and revocation. */
import { hash, randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { OverloadedError } from '../../db/errors.ts'
import { createAuthenticator } from '../../src/keys/authenticator.ts'
import { outOfThree } from '../support/eventually.ts'
import { addKey } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { keys, serviceForFile, trpcClient } from '../support/service.ts'
import { watchStatements } from '../support/statements.ts'

/** Milliseconds that a valid key stays cached: a revoked key works for at most this long. */
const REMEMBERED = 10_000

const metrics = await newMetrics()
const service = await serviceForFile(metrics.variables)

/** Puts the clocks forward; timers, the network and the database are not affected. */
let pass: (milliseconds: number) => void
beforeEach(() => {
  let ahead = 0
  pass = (milliseconds) => {
    ahead += milliseconds
  }
  for (const clock of [Date, performance]) {
    const now = clock.now.bind(clock)
    vi.spyOn(clock, 'now').mockImplementation(() => now() + ahead)
  }
})
afterEach(() => void vi.restoreAllMocks())

const statusWith = async (key: string) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await service.rest('GET', '/pets', { headers })).status
}

const createKey = (name: string, expiresAt?: Date) =>
  keys.create(service.databaseUrl, name, expiresAt)
const unknownKey = () => `petstore_${randomBytes(32).toString('base64url')}`

/** The number of key look-ups so far: in the database (misses), and from the cache (hits). */
const lookUps = async () => ({
  misses: await metrics.read('petstore_key_lookups_total{cache="miss"}'),
  hits: await metrics.read('petstore_key_lookups_total{cache="hit"}'),
})

/** The look-ups that `call` causes. */
async function lookUpsOf(call: () => Promise<unknown>) {
  const before = await lookUps()
  await call()
  const after = await lookUps()
  return { misses: after.misses - before.misses, hits: after.hits - before.hits }
}

test('many requests with one valid key, on both surfaces, cause one look-up', async () => {
  const { key } = await createKey('many')
  const { listPets } = trpcClient(service.origin, key)
  const cost = await lookUpsOf(async () => {
    for (let round = 0; round < 25; round++) {
      expect(await statusWith(key)).toBe(200)
      expect(await listPets.query()).toEqual([])
    }
  })
  expect(cost).toEqual({ misses: 1, hits: 49 })
})

test('the cache holds the keys of many concurrent callers', async () => {
  const many: string[] = []
  for (let caller = 0; caller < 100; caller++) many.push(await addKey(service.sql))
  const askAll = async () => {
    expect(new Set(await Promise.all(many.map(statusWith)))).toEqual(new Set([200]))
  }
  expect(await lookUpsOf(askAll)).toEqual({ misses: 100, hits: 0 })
  expect(await lookUpsOf(askAll)).toEqual({ misses: 0, hits: 100 })
})

test('ten thousand keys are looked up at once, 500 in a query, are kept, and their uses are stored', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(performance.now()) // no key expires meanwhile
  const { databaseUrl, sql } = service
  const many = Array.from({ length: 10_001 }, unknownKey)
  const rows = many.map((key) => `('many', 'petstore_', '${hash('sha256', key)}', 1, 0)`)
  await sql(`insert into api_keys (name, prefix, hash, created_at, read_only) values ${rows}`)
  const statements = await watchStatements(databaseUrl)
  await using db = await connect(databaseUrl)
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) })
  const authenticator = createAuthenticator(db, log)
  using deadline = new Deadline(60_000)
  const find = (key: string) => authenticator.find(key, deadline)
  const [first = '', second = '', ...others] = many
  expect(await find(first)).toBeDefined()
  // A query has just ended, so these wait for the next one.
  const found = [second, ...others, unknownKey()].map(find)
  const failed = (await Promise.allSettled(found)).filter(({ status }) => status === 'rejected')
  expect(failed).toEqual([{ status: 'rejected', reason: expect.any(OverloadedError) }])
  const queries = await statements.like(/^select .*from .api_keys/s)
  await statements.close()
  expect(queries.length).toBeLessThan(40)

  // The last one has replaced the first one, which was used least recently.
  expect([first, second].map(authenticator.remembers)).toEqual([false, true])
  expect(authenticator.known(second)).toBeDefined()
  await find(first)
  expect(many.filter((key) => !authenticator.known(key))).toEqual([others[0]])

  await authenticator.stop()
  expect(warnings).toEqual([])
  const [row] = await sql(
    "select count(last_used_at) as used from api_keys where name = 'many' and created_at = 1",
  )
  expect(Number(row?.used)).toBe(many.length)
})

test('a key is looked up again when its cache entry expires', outOfThree, async () => {
  const { key } = await createKey('again')
  await statusWith(key)
  pass(REMEMBERED - 1_000)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 0, hits: 1 })
  pass(1_000)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
})

/**
 * Sends requests with unknown keys, one after another. The first one need not wait, and a timer
 * may fire 1 ms early.
 */
async function expectPauses(status: number): Promise<void> {
  const count = 40
  const start = process.hrtime.bigint()
  for (let sent = 0; sent < count; sent++) expect(await statusWith(unknownKey())).toBe(status)
  const milliseconds = Number(process.hrtime.bigint() - start) / 1e6
  expect(milliseconds).toBeGreaterThan((count - 1) * 9)
}

test('unknown keys cause at most one look-up per 10 ms', () => expectPauses(401))

test('a key that was valid before is looked up again without a pause', outOfThree, async () => {
  const { key } = await createKey('renewed')
  await statusWith(key)
  const start = process.hrtime.bigint()
  for (let round = 0; round < 40; round++) {
    pass(REMEMBERED)
    expect(await statusWith(key)).toBe(200)
  }
  expect(Number(process.hrtime.bigint() - start) / 1e6).toBeLessThan(39 * 9)
})

test('failing look-ups are limited to one per 10 ms, too, and counted', async () => {
  await service.sql('alter table api_keys rename to elsewhere')
  try {
    expect(await lookUpsOf(() => expectPauses(500))).toEqual({ misses: 40, hits: 0 })
  } finally {
    await service.sql('alter table elsewhere rename to api_keys')
  }
})

test('a look-up of an unknown key waits less than 80 ms', outOfThree, async () => {
  const time = async (key: () => string) => {
    const start = process.hrtime.bigint()
    for (let sent = 0; sent < 20; sent++) await statusWith(key())
    return Number(process.hrtime.bigint() - start) / 1e6 / 20
  }
  await statusWith(service.key)
  const [known, unknown] = [await time(() => service.key), await time(unknownKey)]
  expect(unknown - known, 'the milliseconds that a look-up waits').toBeLessThan(80)
})

test('a malformed key causes no look-up', async () => {
  const cost = await lookUpsOf(async () => {
    for (const text of ['x', 'petstore_', `petstore_${'A'.repeat(44)}`, 'A'.repeat(52)]) {
      expect(await statusWith(text)).toBe(401)
    }
  })
  expect(cost).toEqual({ misses: 0, hits: 0 })
})

test('unknown, expired and revoked keys get the same response and cause the same look-ups', async () => {
  const expired = await createKey('expired', new Date(Date.now() - 1))
  const revoked = await createKey('revoked')
  await keys.revoke(service.databaseUrl, revoked.id)
  const differing = new Set(['date', 'x-request-id'])
  const answers: unknown[] = []
  for (const key of [unknownKey(), expired.key, revoked.key]) {
    const headers = { authorization: `Bearer ${key}` }
    const { status, text, headers: sent } = await service.rest('GET', '/pets', { headers })
    expect(status).toBe(401)
    answers.push([text, ...[...sent].filter(([name]) => !differing.has(name))])
    // Invalid keys are not cached: each request with one waits for a look-up.
    expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
  }
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})

test('a cached key stops working when it expires', outOfThree, async () => {
  const { key } = await createKey('short', new Date(Date.now() + 5_000))
  expect(await statusWith(key)).toBe(200)
  pass(4_000)
  const again = async () => expect(await statusWith(key)).toBe(200)
  expect(await lookUpsOf(again), 'the key is cached').toEqual({ misses: 0, hits: 1 })
  pass(1_000)
  expect(await statusWith(key)).toBe(401)
})

test('a cached key stops working within 10 seconds of its revocation', async () => {
  const { id, key } = await createKey('revoked in use')
  expect(await statusWith(key)).toBe(200)
  await keys.revoke(service.databaseUrl, id)
  pass(REMEMBERED + 1)
  expect(await statusWith(key)).toBe(401)
})

test('rotation of a key that expires makes a key of the same lifetime', async () => {
  const day = 86_400_000
  const lifetime = 90 * day
  const old = await createKey('expiring', new Date(Date.now() + 60 * day))
  await service.sql('update api_keys set created_at = created_at - ? where id = ?', [
    30 * day,
    old.id,
  ])
  const soon = new Date(Date.now() + 60_000)
  const fresh = await keys.rotate(service.databaseUrl, old.id, soon)
  const [row] = await service.sql('select expires_at from api_keys where id = ?', [fresh.id])
  expect(Math.abs(Number(row?.expires_at) - Date.now() - lifetime)).toBeLessThan(5_000)
})

test(
  'a rotated key, also a cached one, works until its grace period ends, the new key at once',
  outOfThree,
  async () => {
    const old = await createKey('rotated')
    const fresh = await keys.rotate(service.databaseUrl, old.id, new Date(Date.now() + 5_000))
    expect(await statusWith(fresh.key)).toBe(200)
    expect(await statusWith(old.key)).toBe(200)
    pass(4_000)
    const again = async () => expect(await statusWith(old.key)).toBe(200)
    expect(await lookUpsOf(again), 'the key is cached').toEqual({ misses: 0, hits: 1 })
    pass(1_001)
    expect(await statusWith(old.key)).toBe(401)
    expect(await statusWith(fresh.key)).toBe(200)
  },
)
