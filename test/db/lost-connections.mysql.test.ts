/** Lost connections, before or after the server executes a statement. */
import { beforeEach, describe, expect, test } from 'vitest'
import { sendTogether } from '../support/freeze.ts'
import { addKey, instanceForFile, running, until } from '../support/instance.ts'
import { programs, runToEnd } from '../support/process.ts'
import { proxied } from '../support/proxy.ts'
import { openSql } from '../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

const service = await instanceForFile()
if (!service.proxy) throw new Error('There is no proxy')
const proxy = service.proxy
beforeEach(async () => {
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await service.sql('delete from pets')
  proxy.statements.length = 0
})

const sent = (pattern: RegExp) => proxy.statements.filter((text) => pattern.test(text)).length
let serial = 0
const createWithKey = (key = `"key ${serial++}"`) =>
  service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body: rex })
const insertion = /^insert into `pets`/

const reads: [string, RegExp, () => Promise<{ status: number }>, number][] = [
  ['a list', /^select .*from `pets`/, () => service.rest('GET', '/pets'), 200],
  ['a single pet', /^select .*from `pets`/, () => service.rest('GET', '/pets/1'), 404],
  [
    'the look-up of a key',
    /^select .*from `api_keys`/s,
    async () => {
      const headers = { authorization: `Bearer ${await addKey(service.sql)}` }
      return await service.rest('GET', '/pets', { headers })
    },
    200,
  ],
  ['the look-up of an Idempotency-Key', /^select .*from `idempotency_keys`/, createWithKey, 201],
]
test('with a connection, each call is one statement', async () => {
  await service.rest('POST', '/pets', { body: rex })
  for (const path of ['/pets/1', '/pets?status=sold']) await service.rest('GET', path)
  expect(sent(/`pets`/)).toBe(3)
})

test('a command says that it may have taken effect', async () => {
  const between = await proxied(service.databaseUrl)
  const broken = between.proxy.breakAt(/^insert into `api_keys`/, 'after')
  const variables = { DATABASE_URL: between.url }
  const { stderr } = await runToEnd(programs.keys, variables, ['create', 'lost', '--expires', '1d'])
  await broken
  await between.proxy.cut()
  expect(stderr).toMatch(/^DATABASE_URL: cannot use .+; a change may have taken effect\n$/)
})

describe.each(['before', 'after'] as const)('%s the server answered', (when) => {
  test.each(reads)('%s: repeated', async (_, pattern, call, status) => {
    const broken = proxy.breakAt(pattern, when)
    expect((await call()).status).toBe(status)
    await broken
    expect(sent(pattern)).toBe(2)
    expect(await service.countPets()).toBe(status === 201 ? 1 : 0)
  })

  test('a creation without a key: 503, and sent once', async () => {
    const broken = proxy.breakAt(insertion, when)
    const answer = await service.rest('POST', '/pets', { body: rex })
    expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
    await broken
    await expect(service.trpc.listPets.query()).resolves.toHaveLength(when === 'after' ? 1 : 0)
    expect(sent(insertion)).toBe(1)
    expect(await service.countPets()).toBe(when === 'after' ? 1 : 0)

    void proxy.breakAt(insertion, when)
    await expect(service.trpc.createPet.mutate(rex)).rejects.toMatchObject({
      data: { code: 'SERVICE_UNAVAILABLE' },
    })
    expect(sent(insertion)).toBe(2)
  })

  test.each([
    /^(begin|start transaction)/,
    insertion,
    /^insert into `idempotency_keys`/,
    /^commit/,
  ])('a creation with a key, at %s: one pet, and its id', async (pattern) => {
    const broken = proxy.breakAt(pattern, when)
    const key = `"key ${serial++}"`
    const answer = await createWithKey(key)
    expect(answer.status).toBe(201)
    await broken
    const rows = await service.sql('select id from pets')
    expect(rows.map(({ id }) => Number(id))).toEqual([(answer.body as { id: number }).id])
    expect((await createWithKey(key)).text).toBe(answer.text)
    expect(await service.countPets()).toBe(1)
  })
})

test.each([/^set session transaction/, /^set session autocommit/, /^show variables/])(
  'a connection lost at %s, before its first use: a creation without a key takes another',
  async (pattern) => {
    for (const when of ['before', 'after'] as const) {
      await proxy.cut()
      await proxy.mend()
      await fetch(`${service.origin}/healthz`) // the process has processed their end
      const broken = proxy.breakAt(pattern, when)
      expect((await service.rest('POST', '/pets', { body: rex })).status).toBe(201)
      await broken
    }
    expect(await service.countPets()).toBe(2)
  },
)

test('the server is unreachable: 503 long before DATABASE_TIMEOUT, until it returns', async () => {
  await proxy.cut()
  try {
    const start = performance.now()
    const strange = { headers: { authorization: `Bearer petstore_${'A'.repeat(43)}` } }
    const answers = await Promise.all([
      service.rest('GET', '/pets'),
      service.rest('GET', '/pets/1'),
      service.rest('POST', '/pets', { body: rex }),
      createWithKey(),
      service.rest('GET', '/pets', strange),
    ])
    for (const answer of answers) expect(answer).toMatchObject({ status: 503 })
    expect(performance.now() - start).toBeLessThan(15_000) // half of it
  } finally {
    await proxy.mend()
  }
  expect((await service.rest('POST', '/pets', { body: rex })).status).toBe(201)
  expect(await service.countPets()).toBe(1)
})

test('no connection stays in use, and no caller waits', () => service.idle())

test.each(['lost', 'said by a proxy to be lost'])(
  'creations in a shared statement that was %s are not repeated',
  async (how) => {
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables pets write')
    const names = Array.from({ length: 12 }, (_, index) => `${how} ${index}`)
    const isSaid = how !== 'lost'
    const failed = isSaid && proxy.failAt(/^insert into `pets`.*\), \(/, 2013) // CR_SERVER_LOST
    const calls = await sendTogether(
      Number(service.program.child.pid),
      names.map((name) => () => service.rest('POST', '/pets', { body: { ...rex, name } })),
    )
    const inserting = () => running(service.sql, 'insert into `pets`%')
    await until('all were sent', () =>
      names.every((name) => proxy.statements.some((text) => text.includes(`'${name}'`))),
    )
    expect(sent(insertion), 'some share a statement').toBeLessThan(names.length)
    await until('the server has them', async () => (await inserting()).length === sent(insertion))
    const ids = isSaid ? [] : await inserting()
    for (const id of ids) await service.sql(`kill ${id}`)
    await until('they end', async () => !(await inserting()).some((id) => ids.includes(id)))
    await locker('unlock tables')
    await failed
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    const lost = statuses.filter((status) => status === 503)
    expect(lost.length, 'several creations fail together').toBeGreaterThan(1)
    if (!isSaid) expect(lost).toHaveLength(names.length)
    expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([])
    const rows = await service.sql('select name from pets')
    expect(rows.map(({ name }) => name).sort(), 'each at most once').toEqual(
      isSaid ? names.toSorted() : [],
    )
  },
)
