/** The example of a resource: what a stranger copies works, on both surfaces and both engines. */
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { meanwhile } from '../support/meanwhile.ts'
import { abortable } from '../support/raw.ts'
import { serveBoth } from './both.ts'

const { service, client, standIn } = await serveBoth()

let serial = 0
let ownerId: number
let visits: string
beforeEach(async () => {
  ownerId = ++serial
  visits = `/owners/${ownerId}/visits`
  await service.sql(`insert into owners (id, name, closed) values (${ownerId}, 'Ada', 0)`)
})

const newVisit = () => ({ reference: `V-${serial++}`, at: '2026-01-02T03:04:05.678Z' })
const create = (body: object = newVisit(), headers = {}) =>
  service.rest('POST', visits, { body, headers })
/** Adds a visit, and returns its path. */
const added = async () => `${visits}/${((await create()).body as { id: number }).id}`
const closed = async () => {
  const [owner] = await service.sql(`select closed from owners where id = ${ownerId}`)
  return Number(owner?.closed)
}

test('a visit is the same on both surfaces', async () => {
  const body = newVisit()
  const made = await create(body)
  const { id } = made.body as { id: number }
  const whole = { id, ...body, urgent: false, note: null, closedAt: null }
  expect([made.status, made.text]).toEqual([201, JSON.stringify(whole)])
  expect(made.headers.get('location')).toBe(`${service.baseUrl}${visits}/${id}`)
  expect((await service.rest('GET', `${visits}/${id}`)).text).toBe(made.text)
  const read = await client.getVisit.query({ ownerId, visitId: id })
  expect(read).toEqual({ ...whole, id: BigInt(id), at: new Date(body.at) })
})

test('nothing is found under a parent that does not exist, or that is another one', async () => {
  const nowhere = await service.rest('POST', '/owners/404/visits', { body: newVisit() })
  expect(nowhere.body).toMatchObject({ message: 'There is no owner with the id 404' })
  expect((await service.rest('GET', '/owners/404/visits')).status).toBe(404)
  const path = await added()
  const elsewhere = path.replace(`/${ownerId}/`, '/404/')
  expect((await service.rest('GET', elsewhere)).status).toBe(404)
  expect((await service.rest('PATCH', elsewhere, { body: { urgent: true } })).status).toBe(404)
  expect((await service.rest('POST', `${elsewhere}/close`)).status).toBe(404)
  expect((await service.rest('DELETE', elsewhere)).status).toBe(404)
  expect((await service.rest('GET', path)).body).toMatchObject({ urgent: false, closedAt: null })
})

test('a removal whose request turns out to be malformed has no effect', async () => {
  const path = await added()
  const chunked = { key: service.key, headers: ['Transfer-Encoding: chunked'] }
  const socket = await abortable(Number(new URL(service.origin).port), `DELETE /v1${path}`, chunked)
  await setTimeout(300)
  socket.write('zz\r\n')
  expect(String((await once(socket, 'data'))[0])).toContain('HTTP/1.1 400 ')
  expect((await service.rest('GET', path)).status).toBe(200)
  const whole = await abortable(Number(new URL(service.origin).port), `DELETE /v1${path}`, chunked)
  // A body that it has none of is ignored, however long.
  whole.write(`11170\r\n${'x'.repeat(70_000)}\r\n`)
  await setTimeout(100)
  whole.write('0\r\n\r\n')
  expect(String((await once(whole, 'data'))[0])).toContain('HTTP/1.1 204 ')
})

test('pages are by descending id, with and without the filter', async () => {
  for (let count = 0; count < 5; count++) await create({ ...newVisit(), urgent: count !== 1 })
  const idsBy = async (query: string): Promise<number[]> => {
    const ids: number[] = []
    for (let path: string | undefined = `${visits}?${query}`; path; ) {
      const page = await service.rest('GET', path)
      ids.push(...(page.body as { id: number }[]).map(({ id }) => id))
      path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
    }
    return ids
  }
  const ids = await idsBy('limit=2')
  expect(ids).toHaveLength(5)
  expect(ids).toEqual(ids.toSorted((one, other) => other - one))
  expect(await idsBy('limit=2&urgent=true')).toEqual(ids.filter((_, index) => index !== 3))
  expect(await idsBy('urgent=false')).toEqual([ids[3]])
  // Concurrent pages share a query.
  const after = (cursor: number) => client.listVisits.query({ ownerId, limit: 1, cursor })
  const pages = await Promise.all(ids.map(after))
  expect(pages.flat().map(({ id }) => Number(id))).toEqual(ids.slice(1))
})

test('PATCH changes what it names, and null clears', async () => {
  const path = await added()
  const patch = (body: object) => service.rest('PATCH', path, { body })
  expect((await patch({ note: 'Asleep' })).body).toMatchObject({ note: 'Asleep', urgent: false })
  expect((await patch({ urgent: true })).body).toMatchObject({ note: 'Asleep', urgent: true })
  expect((await patch({ note: null })).body).toMatchObject({ note: null, urgent: true })
  // The path says which one.
  expect((await patch({ visitId: 404 })).status).toBe(200)
  expect((await patch({ urgent: null })).status).toBe(400)
})

test('DELETE returns nothing, and then there is nothing', async () => {
  const path = await added()
  expect(await service.rest('DELETE', path)).toMatchObject({ status: 204, text: '' })
  expect((await service.rest('DELETE', path)).status).toBe(404)
})

test('an action changes both tables once, also for concurrent callers and repetitions', async () => {
  const path = await added()
  const headers = { 'idempotency-key': `"close ${path}"` }
  const done = await service.rest('POST', `${path}/close`, { headers })
  expect([done.status, await closed()]).toEqual([200, 1])
  expect((await service.rest('POST', `${path}/close`, { headers })).text).toBe(done.text)
  const other = await added()
  expect((await service.rest('POST', `${other}/close`, { headers })).status).toBe(422)
  const answers = await Promise.all(
    [other, other, path].map((path) => service.rest('POST', `${path}/close`)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  expect(await closed()).toBe(2)
})

test('a reference that is taken is 409 in words of its own, with a key and without', async () => {
  const visit = newVisit()
  await create(visit)
  for (const headers of [{}, { 'idempotency-key': '"taken"' }]) {
    const message = 'There is a visit with this reference already'
    expect((await create(visit, headers)).body).toMatchObject({ code: 'CONFLICT', message })
  }
})

test('a list by name goes on after the last one seen, also among equal names, and has a filter', async () => {
  // In code points, the last one comes after the one before it; in UTF-16, it does not.
  const names = [
    'Graz',
    'Graz ',
    'Grazia',
    'Graz',
    'graz',
    'Gra',
    'Graz\uff01',
    'Graz\u{1f415}',
    'Graz\u{10ffff}',
  ]
  for (const name of names) {
    await service.sql('insert into owners (id, name, closed) values (?, ?, 0)', [++serial, name])
  }
  type Owners = { id: number; name: string }[]
  /** All pages of the list, by `Link`. */
  const all = async (query: string) => {
    const owners: Owners = []
    for (let path: string | undefined = `/owners?${query}`; path; ) {
      const page = await service.rest('GET', path)
      expect(page.status).toBe(200)
      owners.push(...(page.body as Owners))
      path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
    }
    return owners
  }
  const bytes = ({ id, name }: Owners[number]) => `${Buffer.from(name).toString('hex')} ${1e6 + id}`
  const everyone = await all('limit=100')
  expect(everyone).toEqual(everyone.toSorted((a, b) => (bytes(a) < bytes(b) ? -1 : 1)))
  expect(everyone.length).toBeGreaterThan(names.length)
  for (const limit of [1, 2, 3]) expect(await all(`limit=${limit}`)).toEqual(everyone)
  const ofGraz = everyone.filter(({ name }) => name.startsWith('Graz'))
  expect(ofGraz).toHaveLength(7)
  expect(await all('limit=2&prefix=Graz')).toEqual(ofGraz)
  // A client of tRPC writes the cursor, and concurrent pages keep apart. No cursor leaves the filter.
  const after = ({ id, name }: Owners[number]) =>
    client.listOwners.query({ limit: 1, cursor: `${id} ${name}`, prefix: 'Graz' })
  const pages = await Promise.all(everyone.slice(0, -2).map(after))
  const next = (at: number) => everyone.slice(at + 1).find((owner) => ofGraz.includes(owner))
  expect(pages.flat().map(({ id }) => Number(id))).toEqual(
    pages.flatMap((_, at) => next(at)?.id ?? []),
  )
  // Beyond int64, it is the greatest id: SQLite would refuse it.
  expect((await service.rest('GET', '/owners?cursor=9999999999999999999%20z')).body).toEqual([])
  for (const cursor of [
    '7',
    'x Graz',
    '7Graz',
    ' Graz',
    '7 ',
    '-1 Graz',
    '92233720368547758080 Graz',
  ]) {
    const answer = await service.rest('GET', `/owners?cursor=${encodeURIComponent(cursor)}`)
    expect(answer).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } })
    expect(answer.text).toContain(
      'cursor must be the id, a space and the name of one of the owners',
    )
  }
})

test('a visit that another transaction is closing waits for it, and is closed once', async () => {
  const path = await added()
  const close = `update visits set closed_at = 0 where id = ${path.split('/').at(-1)}`
  const answer = await meanwhile(service.sql, [close], () => service.rest('POST', `${path}/close`))
  expect(answer).toMatchObject({ status: 409, body: { message: 'This visit is closed already' } })
})

test.each([
  ['the service', client],
  ['the stand-in', standIn],
])('%s: owners and visits by a client', async (_, petstore) => {
  const ada = await petstore.createOwner.mutate({ name: 'Ada Z' })
  const bob = await petstore.createOwner.mutate({ name: 'Bob Z' })
  expect(await petstore.getOwner.query({ ownerId: ada.id })).toEqual(ada)
  const after = { cursor: `${ada.id} ${ada.name}` }
  expect((await petstore.listOwners.query({ ...after, prefix: 'Bob Z' }))[0]).toEqual(bob)
  const at = new Date('2026-01-02T03:04:05Z')
  const of = { ownerId: ada.id }
  const reference = `S-${serial++}`
  const visit = await petstore.createVisit.mutate({ ...of, reference, at })
  const taken = petstore.createVisit.mutate({ ...of, reference, at })
  await expect(taken).rejects.toThrow('There is a visit with this reference already')
  const other = await petstore.createVisit.mutate({ ...of, reference: `S-${serial++}`, at })
  const place = { ...of, visitId: visit.id }
  const changed = await petstore.updateVisit.mutate({ ...place, urgent: true, note: 'Asleep' })
  expect(changed).toEqual({ ...visit, urgent: true, note: 'Asleep' })
  expect(await petstore.listVisits.query(of)).toEqual([other, changed])
  expect(await petstore.listVisits.query({ ...of, urgent: false })).toEqual([other])
  expect((await petstore.closeVisit.mutate(place)).closedAt).toEqual(expect.any(Date))
  await expect(petstore.closeVisit.mutate(place)).rejects.toThrow('This visit is closed already')
  const elsewhere = { ...place, ownerId: bob.id }
  await expect(petstore.removeVisit.mutate(elsewhere)).rejects.toThrow('There is no visit')
  await petstore.removeVisit.mutate(place)
  await expect(petstore.getVisit.query(place)).rejects.toThrow('There is no visit')
  const nobody = petstore.listVisits.query({ ownerId: 9_999_999 })
  await expect(nobody).rejects.toThrow('There is no owner')
})
