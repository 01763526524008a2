/** Concurrent creations share a statement or a transaction; each has its own id and outcome. */
import { hash } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Insertable } from 'kysely'
import { expect, expectTypeOf, test } from 'vitest'
import { inserts } from '../../db/coalesce/inserts.ts'
import { connect as openDatabase } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { DuplicateError } from '../../db/errors.ts'
import type { Tables } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { type Instance, running, startInstance, until } from '../support/instance.ts'
import { runServer } from '../support/process.ts'
import { requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    labels: { id: bigint }
  }
}

test('only a table whose ids the database assigns has an insert', () => {
  type Table = Parameters<typeof inserts>[0]
  expectTypeOf<'pets'>().toExtend<Table>()
  expectTypeOf<'labels'>().not.toExtend<Table>()
})

const service = await serviceForFile()
const { sql } = service

const create = (name: string, key?: string) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { name, categoryId: 3, status: 'pending' },
  })

/** Makes concurrent calls, all of which arrive before the first response. */
async function concurrently<Answer>(
  names: string[],
  call: (name: string, index: number) => Promise<Answer>,
): Promise<Answer[]> {
  if (engine === 'mysql') await sql('lock tables pets write')
  let begun = 0
  const onRequest = () => void begun++
  subscribe('http.server.request.start', onRequest)
  const answers = Promise.all(names.map(call))
  try {
    // The client of the tests also requests the document.
    await eventually(() => expect(begun).toBeGreaterThanOrEqual(names.length))
  } finally {
    unsubscribe('http.server.request.start', onRequest)
    if (engine === 'mysql') await sql('unlock tables')
  }
  return await answers
}

/** Expects these pets and no others in the database, each with the id and the name of its response. */
async function expectPets(answers: Awaited<ReturnType<typeof create>>[]): Promise<void> {
  const made = answers.map(({ body }) => body as { id: number; name: string })
  const rows = await sql('select id, name, category_id, status from pets')
  const names = new Map(rows.map(({ id, name }) => [Number(id), name]))
  for (const { id, name } of made) expect(names.get(id)).toBe(name)
  expect(new Set(made.map(({ id }) => id)).size).toBe(made.length)
  expect(rows.every((row) => row.category_id === 3n && row.status === 'pending')).toBe(true)
  expect(rows).toHaveLength(made.length)
}

test('a row with other columns than an earlier one is rejected', async () => {
  const db = await openDatabase(service.databaseUrl)
  const insert = inserts('pets', (row: Insertable<Tables['pets']>) => row)
  using deadline = new Deadline(5_000)
  const row = { name: 'Rex', category_id: 3n, status: 'pending' } as const
  const id = 7_000n
  expect(await insert(db, { id, ...row }, deadline)).toBe(id)
  // The same number of columns, in another order, or with another name, or one that is undefined.
  const { name, ...others } = row
  for (const wrong of [
    row,
    { ...row, id },
    { ...others, id, name },
    { id, ...others, category: name } as never,
    { id, ...row, status: undefined } as never,
  ]) {
    const other = { ...wrong, ...(wrong !== row && { id: id + 1n }) }
    await expect(insert(db, other, deadline)).rejects.toThrow(
      /^The rows of pets must have the same columns: id,name,category_id,status, not /,
    )
  }
  const next = { id: id + 1n, ...row, other: undefined } as never
  expect(await insert(db, next, deadline)).toBe(id + 1n)
  await db.destroy()
})

test('a row that exists already does not affect the other rows of its statement', async () => {
  const db = await openDatabase(service.databaseUrl)
  const insert = inserts('pets', (row: Insertable<Tables['pets']>) => row)
  using deadline = new Deadline(5_000)
  const rowOf = (id: bigint) => ({ id, name: 'Rex', category_id: 3n, status: 'pending' }) as const
  await insert(db, rowOf(9_001n), deadline)
  const outcomes = await Promise.allSettled(
    [9_000n, 9_001n, 9_002n].map((id) => insert(db, rowOf(id), deadline)),
  )
  expect(outcomes).toEqual([
    { status: 'fulfilled', value: 9_000n },
    { status: 'rejected', reason: expect.any(DuplicateError) },
    { status: 'fulfilled', value: 9_002n },
  ])
  await db.destroy()
})

test('a transaction goes on after a duplicate that its work catches', async () => {
  const db = await openDatabase(service.databaseUrl)
  const pet = { name: 'Rex', category_id: 3n, status: 'pending' } as const
  await inTransaction(db, async (transaction) => {
    const add = (id: bigint) =>
      transaction
        .insertInto('pets')
        .values({ id, ...pet })
        .execute()
    await add(8_001n)
    await expect(add(8_001n)).rejects.toThrow(DuplicateError)
    await add(8_002n)
  })
  expect(await sql('select id from pets where id in (8001, 8002)')).toHaveLength(2)
  await sql('delete from pets')
  await db.destroy()
})

test('300 concurrent creations: 300 ids, each with its own name', async () => {
  await sql('delete from pets')
  const names = Array.from({ length: 300 }, (_, index) => `many ${index}`)
  // Every tenth one has a key.
  const answers = await concurrently(names, (name, index) =>
    create(name, index % 10 === 0 ? `"${name}"` : undefined),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  expect(answers.map(({ body }) => (body as { name: string }).name)).toEqual(names)
  await expectPets(answers)
})

/** Sends all requests concurrently, each on its own connection, and returns the responses. */
async function atOneMoment({ program }: Instance, requests: string[]): Promise<string[]> {
  const pid = Number(program.child.pid)
  await freeze(pid)
  const sockets = requests.map(() => connect(program.port, '127.0.0.1'))
  const send = (socket: Socket, index: number) =>
    new Promise((resolve) => socket.write(`${requests[index]}`, resolve))
  await Promise.all(sockets.map(send)) // all arrive before the process continues
  thaw(pid)
  return await Promise.all(sockets.map(text))
}

test('more concurrent calls than the limits of a statement, a transaction and a query all succeed', async () => {
  const crowded = await startInstance()
  await crowded.rest('GET', '/pets') // the key is in the cache
  const ten = Array.from({ length: 10 }, (_, index) => index)
  const inputs = ten.map((index) => [index, `[{"name":1,"categoryId":2},"Pet ${index}",3]`])
  const body = JSON.stringify(Object.fromEntries(inputs))
  const once = { key: crowded.key, headers: ['Connection: close'] }
  const line = `POST /trpc/${ten.map(() => 'createPet').join()}?batch=1`
  const creation = requestText(line, { ...once, body })
  const batches = await atOneMoment(crowded, Array(45).fill(creation))
  for (const batch of batches) expect(batch).toMatch(/^HTTP\/1\.1 200 /)
  // A bigint in devalue's encoding, with its quotes escaped.
  const answered = batches.join().matchAll(/BigInt\\",\\"(\d+)/g)
  const numbers = new Set(Array.from(answered, ([, digits]) => Number(digits)))
  const made = await crowded.sql('select id from pets')
  expect(made).toHaveLength(450)
  expect(
    made.filter(({ id }) => !numbers.has(Number(id))),
    'ids without an answer',
  ).toEqual([])

  const twenties = Array.from({ length: 22 }, (_, index) =>
    made.slice(20 * index, 20 * index + 20).map(({ id }) => Number(id)),
  )
  const gets = twenties.map((ids) => {
    const input = ids.map((id, index) => [index, `[{"petId":1},${id}]`])
    const query = `batch=1&input=${encodeURIComponent(JSON.stringify(Object.fromEntries(input)))}`
    return requestText(`GET /trpc/${ids.map(() => 'getPet').join()}?${query}`, once)
  })
  // While the first calls hang, the others exceed the size of one query.
  if (engine === 'mysql') await crowded.sql('lock tables pets write')
  const answers = atOneMoment(crowded, gets)
  if (engine === 'mysql') {
    const queries = () => running(crowded.sql, 'select%from `pets`%')
    await until('more than one query hangs', async () => (await queries()).length > 1)
    await crowded.sql('unlock tables')
  }
  for (const [index, answer] of (await answers).entries()) {
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    const got = Array.from(answer.matchAll(/BigInt\\",\\"(\d+)/g), ([, digits]) => Number(digits))
    expect(new Set(got)).toEqual(new Set([...(twenties[index] ?? []), 3])) // the category
  }
  await crowded.stop()
})

test('a creation that fails does not affect the others', async () => {
  await sql('delete from pets')
  const refuse =
    engine === 'mysql'
      ? `create trigger refuse before insert on pets for each row
         if new.name = 'bad' then signal sqlstate '45000' set message_text = 'no'; end if`
      : `create trigger refuse before insert on pets when new.name = 'bad'
         begin select raise(abort, 'no'); end`
  await sql(refuse)
  try {
    const names = Array.from({ length: 60 }, (_, index) =>
      index % 20 === 7 ? 'bad' : `good ${index}`,
    )
    const answers = await concurrently(names, (name, index) =>
      create(name, index % 3 === 0 ? `"refused ${index}"` : undefined),
    )
    const isBad = (_: unknown, index: number) => names[index] === 'bad'
    expect(answers.filter(isBad).map(({ status }) => status)).toEqual([500, 500, 500])
    const good = answers.filter((answer, index) => !isBad(answer, index))
    expect(good.every(({ status }) => status === 201)).toBe(true)
    await expectPets(good)
  } finally {
    await sql('drop trigger refuse')
  }
})

test('a creation whose key is rejected or was used does not affect the others', async () => {
  await sql('delete from pets')
  const first = await create('used', '"used"')
  const bad = hash('sha256', 'bad')
  await sql(
    engine === 'mysql'
      ? `create trigger refuse before insert on idempotency_keys for each row
         if new.key_hash = '${bad}' then signal sqlstate '45000' set message_text = 'no'; end if`
      : `create trigger refuse before insert on idempotency_keys when new.key_hash = '${bad}'
         begin select raise(abort, 'no'); end`,
  )
  try {
    const names = Array.from({ length: 40 }, (_, index) => `new ${index}`)
    names.splice(20, 0, 'bad', 'used')
    const answers = await concurrently(names, (name) => create(name, `"${name}"`))
    const [refused, again] = answers.splice(20, 2)
    expect([refused?.status, again?.text]).toEqual([500, first.text])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    await expectPets([first, ...answers])
  } finally {
    await sql('drop trigger refuse')
  }
})

// All errors by which the server rejects the values of a row.
const refusals = [
  1022, 1048, 1062, 1153, 1169, 1216, 1264, 1265, 1292, 1366, 1406, 1411, 1452, 1526,
]
const otherRefusals = [1586, 1644, 1690, 3140, 3819, 4025]

test.runIf(engine === 'mysql')(
  'a row that the server rejects does not affect the others, for any reason',
  async () => {
    await sql('delete from pets')
    await sql(`create trigger refuse before insert on pets for each row begin
    declare number int;
    if new.name like 'bad %' then
      set number = substring(new.name, 5);
      signal sqlstate '45000' set mysql_errno = number, message_text = 'no';
    end if;
  end`)
    try {
      for (const number of [...refusals, ...otherRefusals]) {
        await sql('lock tables pets write')
        // The calls of one batch share a statement.
        const inputs = ['good', `bad ${number}`, 'good'].map((name, index) => [
          index,
          transformer.serialize({ name, categoryId: 3 }),
        ])
        const answer = service.fetch('/trpc/createPet,createPet,createPet?batch=1', {
          method: 'POST',
          body: JSON.stringify(Object.fromEntries(inputs)),
        })
        await eventually(async () => {
          expect(await running(sql, `%'good'%'bad ${number}'%'good'%`)).toHaveLength(1)
        })
        await sql('unlock tables')
        const answers = (await (await answer).json()) as object[]
        const isMade = answers.map((one) => 'result' in one)
        expect(isMade, String(number)).toEqual([true, false, true])
      }
      const [row] = await sql('select count(*) as count from pets')
      expect(Number(row?.count)).toBe(2 * [...refusals, ...otherRefusals].length)
    } finally {
      await sql('unlock tables')
      await sql('drop trigger refuse')
    }
  },
)

test('kill -9 during creations: each acknowledged pet is stored once', async () => {
  const database = await newDatabase()
  const seed = await startService({}, { database: { ...database, remove: async () => {} } })
  const { key } = seed
  await seed.stop()
  const server = await runServer({ DATABASE_URL: database.url })
  const acknowledged = new Map<number, string>()
  const sent = new Set<string>()
  let isOver = false
  const enough = Promise.withResolvers<void>()
  const writers = Array.from({ length: 16 }, async (_, writer) => {
    for (let serial = 0; !isOver; serial++) {
      const name = `${writer} ${serial}`
      sent.add(name)
      const answer = await keyedFetch(server.origin, key)('/v1/pets', {
        method: 'POST',
        headers: writer % 4 === 0 ? { 'idempotency-key': `"${name}"` } : {},
        body: JSON.stringify({ name, categoryId: 3 }),
      }).catch(() => undefined)
      if (!answer) return
      const pet = (await answer.json().catch(() => ({}))) as { id?: number }
      if (answer.status === 201 && pet.id !== undefined) acknowledged.set(pet.id, name)
      if (acknowledged.size > 400) enough.resolve()
    }
  })
  await enough.promise
  server.child.kill('SIGKILL')
  isOver = true
  await Promise.all(writers)
  await server.exited
  await using beside = await openSql(database.url)
  const rows = await beside('select id, name from pets')
  const kept = new Map(rows.map(({ id, name }) => [Number(id), String(name)]))
  for (const [id, name] of acknowledged) expect(kept.get(id)).toBe(name)
  expect(new Set(kept.values()).size, 'no pet is stored twice').toBe(rows.length)
  expect([...kept.values()].every((name) => sent.has(name))).toBe(true)
  await beside.close()
  await database.remove()
})
