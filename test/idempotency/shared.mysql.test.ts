/** Creations with Idempotency-Keys that share a transaction: one client disconnects, one key is in use elsewhere, one work fails. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { freeze, sendTogether, thaw } from '../support/freeze.ts'
import { instanceForFile, running, startInstance, until } from '../support/instance.ts'
import { startMysql } from '../support/mysql.ts'
import { requestText } from '../support/raw.ts'
import { openSql } from '../support/sql.ts'

const service = await instanceForFile({ DATABASE_TIMEOUT: '25s' })
const statements = service.proxy?.statements ?? []
beforeEach(async () => {
  await service.idle()
  for (const table of ['pets', 'idempotency_keys']) await service.sql(`delete from ${table}`)
  expect((await service.rest('GET', '/pets')).status).toBe(200) // caches the API key
  statements.length = 0
})

const petOf = (name: string) => ({ name, categoryId: 3 })
/** Creates a pet with this name, which is also its key. */
const create = (name: string, { rest } = service) =>
  rest('POST', '/pets', { headers: { 'idempotency-key': `"${name}"` }, body: petOf(name) })

/** Creates pets, which arrive together, while a table is locked, and `meanwhile` runs; returns the answers. */
async function createBehind(table: string, names: string[], meanwhile = async () => {}) {
  await using locker = await openSql(service.databaseUrl)
  await locker(`lock tables ${table} write`)
  const calls = names.map((name) => () => create(name))
  const answers = Promise.all(await sendTogether(Number(service.program.child.pid), calls))
  await meanwhile()
  await locker('unlock tables')
  return await answers
}
const statusesOf = (answers: { status: number }[]) => answers.map(({ status }) => status)

const begun = () => statements.filter((text) => text === 'begin').length
const inserted = () => statements.filter((text) => text.startsWith('insert into `pets`'))
const isSent = (name: string) => inserted().join().includes(`'${name}'`)
/** The first pet of a statement that has several. */
const sharing = () =>
  inserted()
    .map((text) => Array.from(text.matchAll(/'(Pet \d)'/g), ([, name]) => name))
    .find(({ length }) => length > 1)?.[0]
/** How often a key was looked for. */
const looked = () =>
  statements
    .filter((text) => /^select .*from `idempotency_keys`/.test(text))
    .flatMap((text) => text.match(/`key_hash` = /g) ?? []).length

test('creations that share a transaction commit together, also the creation of a client that disconnects', async () => {
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const pid = Number(service.program.child.pid)
  await freeze(pid) // all requests arrive before the first one is served
  const names = Array.from({ length: 6 }, (_, index) => `Pet ${index}`)
  const sockets = await Promise.all(
    names.map(async (name) => {
      const body = JSON.stringify(petOf(name))
      const headers = [`Idempotency-Key: "${name}"`]
      const request = requestText('POST /v1/pets', { key: service.key, headers, body })
      const socket = connect(service.program.port, '127.0.0.1').on('error', () => {})
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(request, resolve))
      return socket
    }),
  )
  thaw(pid)
  await until('all inserts wait', () => names.every(isSent))
  const before = begun()
  // Most creations share a statement; one of their clients disconnects.
  const places = inserted().map((text) => Array.from(text.matchAll(/'Pet (\d)'/g)))
  const [[, place] = []] = places.find(({ length }) => length > 1) ?? []
  const staying = sockets.filter((_, index) => index !== Number(place))
  sockets[Number(place)]?.resetAndDestroy()
  await until('the log has the 499', () => /"status":499\b/.test(service.program.stderr))
  const answers = staying.map((socket) => once(socket, 'data'))
  await locker('unlock tables')
  for (const [data] of await Promise.all(answers)) expect(String(data)).toMatch(/ 201 /)
  expect(begun()).toBe(before)
  expect(await service.countPets()).toBe(6)
  expect((await create(`Pet ${place}`)).status).toBe(201)
  expect(await service.countPets()).toBe(6)
  for (const socket of staying) socket.destroy()
})

test('a key that another instance is storing is 409 at once, and its neighbours do not wait', async () => {
  const server = await startMysql() // which counts the waits of no other test
  onTestFinished(server.remove)
  const service = await startInstance({}, await newDatabase(server.url))
  onTestFinished(async () => void (await service.stop()))
  expect((await create('finished', service)).status).toBe(201)
  const [row] = await service.sql('select * from idempotency_keys')
  await using other = await openSql(service.databaseUrl)
  await other('begin')
  // As another instance stores a key, before its commit.
  const values = [row?.api_key_id, `'${hash('sha256', 'busy')}'`, "'createPet'", "'x'", "''", 1]
  await other(
    `insert into idempotency_keys (api_key_id, key_hash, operation, fingerprint, answer, created_at)
     values (${values})`,
  )
  const waits = async () => {
    const [status] = await other("show global status like 'Innodb_row_lock_waits'")
    return Number(status?.Value)
  }
  const before = await waits()
  const keys = Array.from({ length: 20 }, (_, index) => (index === 10 ? 'busy' : `free ${index}`))
  const answers = await Promise.all(
    [...keys, 'finished', 'finished '].map((key) => create(key, service)),
  )
  expect(statusesOf(answers)).toEqual(
    keys.map((key) => (key === 'busy' ? 409 : 201)).concat(201, 201),
  )
  expect(await waits(), 'no statement waited for the lock').toBe(before)
  await other('rollback')
  expect((await create('busy', service)).status).toBe(201)
})

test('a new key waits for the lock of the whole table, as a creation without a key does', async () => {
  await using other = await openSql(service.databaseUrl)
  await other('lock tables idempotency_keys read, pets read')
  const made = create('new')
  // On MySQL the look-up of the key waits, too.
  const waiting = async () => [
    ...(await running(service.sql, 'insert into%')),
    ...(await running(service.sql, 'select%idempotency_keys%')),
  ]
  let before: unknown[] = []
  await until('a statement waits', async () => {
    const now = await waiting()
    const isSame = now.length > 0 && `${now}` === `${before}`
    before = now
    return isSame
  })
  await other('unlock tables')
  expect((await made).status).toBe(201)
})

test('where another instance stores a key in between, its call alone looks for it again', async () => {
  await create('first')
  // As many as sessions may write, so that none waits for another one.
  const names = Array.from({ length: 6 }, (_, index) => `Pet ${index}`)
  let taken: string | undefined
  let [begunBefore, lookedBefore] = [0, 0]
  const answers = await createBehind('pets', names, async () => {
    await until('all wait', () => names.every(isSent))
    taken = sharing()
    ;[begunBefore, lookedBefore] = [begun(), looked()]
    await service.sql(
      `insert into idempotency_keys (api_key_id, key_hash, operation, fingerprint, answer, created_at)
       select api_key_id, '${hash('sha256', `${taken}`)}', operation, 'x', answer, created_at from idempotency_keys`,
    )
  })
  expect(statusesOf(answers)).toEqual(names.map((name) => (name === taken ? 422 : 201)))
  expect(begun() - begunBefore, 'the one is searched by halves').toBeLessThanOrEqual(4)
  expect(looked() - lookedBefore, 'the others do not look again').toBe(1)
})

test('a key that has expired is stored anew in a transaction that others share', async () => {
  const first = await create('old')
  await service.sql('update idempotency_keys set created_at = 0')
  const before = begun()
  const names = ['old', ...Array.from({ length: 9 }, (_, index) => `new ${index}`)]
  const answers = await createBehind('idempotency_keys', names)
  expect(statusesOf(answers)).toEqual(names.map(() => 201))
  expect(answers[0]?.text).not.toBe(first.text)
  expect(begun() - before, 'none is repeated').toBeLessThanOrEqual(6)
  const keys = await service.sql('select id from idempotency_keys')
  expect([keys.length, await service.countPets()]).toEqual([10, 11])
})

test('a row that is rejected leaves the rows beside it in their transaction', async () => {
  await service.sql(
    `create trigger refuse before insert on pets for each row
     if new.name = 'bad' then signal sqlstate '45000' set message_text = 'no'; end if`,
  )
  onTestFinished(async () => void (await service.sql('drop trigger refuse')))
  await create('first')
  const before = begun()
  const names = Array.from({ length: 60 }, (_, index) => (index === 7 ? 'bad' : `good ${index}`))
  const answers = await createBehind('idempotency_keys', names)
  expect(statusesOf(answers)).toEqual(names.map((name) => (name === 'bad' ? 500 : 201)))
  expect(begun() - before).toBeLessThan(20)
})
