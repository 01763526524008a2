/** Concurrent creations share a statement or a transaction; each has its own id and outcome. */
import { hash } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { connect as openDatabase } from '../../db/connect.ts'
import { DuplicateError } from '../../db/errors.ts'
import type { creation } from '../../db/plans/creations.ts'
import { execute } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { engine, newDatabase } from '../support/database.ts'
import { runServer } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey, serviceForFile } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { watchStatements } from '../support/statements.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    labels: { id: bigint }
  }
}

test('only a table whose ids the database assigns has a creation', () => {
  type Table = Parameters<typeof creation>[0]
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
  await sql(engine === 'mysql' ? 'lock tables pets write' : 'begin immediate')
  let begun = 0
  const onRequest = () => void begun++
  subscribe('http.server.request.start', onRequest)
  const answers = Promise.all(names.map(call))
  try {
    // The client of the tests also requests the document.
    await vi.waitFor(() => expect(begun).toBeGreaterThanOrEqual(names.length), 30_000)
  } finally {
    unsubscribe('http.server.request.start', onRequest)
    await sql(engine === 'mysql' ? 'unlock tables' : 'commit')
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

test('a transaction goes on after a duplicate that its work catches', async () => {
  await using db = await openDatabase(service.databaseUrl)
  const pet = { name: 'Rex', category_id: 3n, status: 'pending' } as const
  await inTransaction(db, async (transaction) => {
    const add = (id: bigint) =>
      execute(transaction, transaction.kysely.insertInto('pets').values({ id, ...pet }))
    await add(8_001n)
    await expect(add(8_001n)).rejects.toThrow(DuplicateError)
    await add(8_002n)
  })
  expect(await sql('select id from pets where id in (8001, 8002)')).toHaveLength(2)
  await sql('delete from pets')
})

test('300 concurrent creations share statements: 300 ids, each with its own name', async () => {
  await sql('delete from pets')
  const statements = await watchStatements(service.databaseUrl)
  onTestFinished(statements.close)
  const names = Array.from({ length: 300 }, (_, index) => `many ${index}`)
  // Every tenth one has a key.
  const answers = await concurrently(names, (name, index) =>
    create(name, index % 10 === 0 ? `"${name}"` : undefined),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  expect(answers.map(({ body }) => (body as { name: string }).name)).toEqual(names)
  await expectPets(answers)
  expect((await statements.like(/^insert into .pets\b/)).length).toBeLessThan(100)
})

const refusals =
  engine === 'mysql'
    ? ["if new.name = 'bad' then signal sqlstate '45000' set message_text = 'no'; end if"]
    : ["raise(abort, 'no')", "raise(rollback, 'no')", 'raise(ignore)'].map(
        (raise) => `when new.name = 'bad' begin select ${raise}; end`,
      )
test.each(refusals)('a creation that fails does not affect the others: %s', async (refusal) => {
  await sql('delete from pets')
  await sql(
    `create trigger refuse before insert on pets ${engine === 'mysql' ? 'for each row' : ''} ${refusal}`,
  )
  try {
    const names = Array.from({ length: 60 }, (_, index) =>
      index % 20 === 7 ? 'bad' : `good ${index}`,
    )
    const answers = await concurrently(names, (name, index) =>
      create(name, index % 3 === 0 ? `"${refusal} ${index}"` : undefined),
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

test('kill -9 during creations: each acknowledged pet is stored once', async () => {
  const database = await newDatabase()
  const key = await createKey(database.url)
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
