/** The errors of a MySQL server, and their effect: another attempt, 503, or 500. */
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { execute } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { instanceForFile, until } from '../support/instance.ts'
import { openSql } from '../support/sql.ts'

const service = await instanceForFile()
if (!service.proxy) throw new Error('There is no proxy')
const { proxy } = service

const rex = { name: 'Rex', categoryId: 3 }
let serial = 0
const create = (withKey: boolean, body = rex) =>
  service.rest('POST', '/pets', {
    ...(withKey && { headers: { 'idempotency-key': `"key ${serial++}"` } }),
    body,
  })

beforeEach(async () => {
  await service.sql('delete from pets')
  // Without transactions, so that it keeps the attempts that were rolled back.
  await service.sql('create table attempts (connection bigint) engine = MyISAM')
})
afterEach(async () => {
  await service.sql('drop trigger if exists fail')
  await service.sql('drop table attempts')
})

/** Makes the first inserts of a pet fail with the error of this number. */
async function failFirst(attempts: number, number: number) {
  await service.sql('delete from attempts')
  await service.sql('drop trigger if exists fail')
  await service.sql(`create trigger fail before insert on pets for each row begin
      insert into attempts values (connection_id());
      if (select count(*) from attempts) <= ${attempts} then
        signal sqlstate '45000' set mysql_errno = ${number}, message_text = 'No';
      end if;
    end`)
}
const connections = async () =>
  (await service.sql('select connection from attempts')).map(({ connection }) => connection)

const codeOf = ({ status, body }: { status: number; body: unknown }) => ({
  status,
  ...(status === 201 ? {} : { code: (body as { code: string }).code }),
})
const unavailable = { status: 503, code: 'SERVICE_UNAVAILABLE' }

// One or two numbers of each kind; errors.unit has all of them.
test.each([
  [1205, 3],
  [1142, 3],
  [1213, 6],
])('%i had no effect: any creation is repeated, up to %i attempts', async (number, most) => {
  for (const withKey of [false, true]) {
    await failFirst(most - 1, number)
    expect(codeOf(await create(withKey))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(most)
  }
  await failFirst(9, number)
  const refused = await create(false)
  expect(codeOf(refused)).toEqual(unavailable)
  expect(refused.headers.get('retry-after')).toBe('5')
  expect(await connections()).toHaveLength(most)
  expect(await service.countPets()).toBe(2)
})

test('1290: repeated on another connection, which may lead to another server', async () => {
  for (const withKey of [false, true]) {
    await failFirst(1, 1290)
    expect(codeOf(await create(withKey))).toEqual({ status: 201 })
    const [first, second, ...more] = await connections()
    expect(second).toBeDefined()
    expect(second).not.toBe(first)
    expect(more).toEqual([])
  }
})

test.each([
  [1053, 3],
  [1317, 6],
  [1927, 3],
])(
  'the effect of %i is unknown: only a request with an Idempotency-Key is repeated, up to %i attempts',
  async (number, most) => {
    await failFirst(1, number)
    expect(codeOf(await create(false))).toEqual(unavailable)
    const [before, ...more] = await connections()
    expect(more).toEqual([])
    await failFirst(most - 1, number)
    expect(codeOf(await create(true))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(most)
    expect(await service.countPets()).toBe(1)
    await failFirst(9, number)
    expect(codeOf(await create(true))).toEqual(unavailable)
    expect(await connections()).toHaveLength(most)
    // It does not affect the next statement on its connection.
    await failFirst(1, 1213)
    expect(codeOf(await create(false))).toEqual({ status: 201 })
    expect(await connections()).toEqual([before, before])
  },
)

test.each([1054, 1264])('%i is a bug, or a foreign schema: 500, once', async (number) => {
  for (const withKey of [false, true]) {
    await failFirst(1, number)
    const answer = await create(withKey)
    expect(codeOf(answer)).toEqual({ status: 500, code: 'INTERNAL_SERVER_ERROR' })
    expect(answer.headers.get('retry-after')).toBeNull()
    expect(await connections()).toHaveLength(1)
  }
  expect(await service.countPets()).toBe(0)
})

test('an error in the set-up of a connection is the cause, and the statement was not sent', async () => {
  const url = Object.assign(new URL(service.databaseUrl), { host: `127.0.0.1:${proxy.port}` })
  await using db = await connect(url.href)
  const before = proxy.statements.length
  const failed = proxy.failAt(/^show variables/, 1053)
  await expect(execute(db, db.kysely.selectFrom('pets').select('id'))).rejects.toMatchObject({
    name: 'DatabaseUnavailableError',
    hadNoEffect: true,
    cause: { message: 'Refused on the way', errno: 1053 },
  })
  await failed
  // It ran no statement, so no connection is opened to end one.
  await setTimeout(200)
  const begun = proxy.statements.slice(before).filter((text) => /^set session tr/.test(text))
  expect(begun).toHaveLength(1)
})

test('a transaction that the server ended fails, even if its work ignores the error', async () => {
  await failFirst(1, 1213)
  await using db = await connect(service.databaseUrl)
  const pet = { name: 'Rex', category_id: 3n, status: 'sold' } as const
  const ended = inTransaction(db, async (transaction) => {
    const insert = transaction.kysely.insertInto('pets').values(pet)
    await execute(transaction, insert).catch(() => {})
  })
  await expect(ended).rejects.toMatchObject({ name: 'ConflictError', hadNoEffect: true })
})

test('a creation is repeated while it waits for a lock for more than a second', async () => {
  await service.sql('create table held (n int)')
  await service.sql('insert into held values (0)')
  await service.sql(`create trigger fail before insert on pets for each row begin
      insert into attempts values (connection_id());
      update held set n = n + 1;
    end`)
  await using rival = await openSql(service.databaseUrl)
  await rival('begin')
  await rival('update held set n = n + 1')
  const start = performance.now()
  const answer = create(false)
  await until('the second attempt', async () => (await connections()).length === 2)
  expect(performance.now() - start, 'the server waits a second for a lock').toBeLessThan(10_000)
  await rival('commit')
  expect((await answer).status).toBe(201)
  expect(await service.countPets()).toBe(1)
})
