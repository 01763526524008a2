/** Tours: a list of ids, states, rules across fields, and a list by a time, on both surfaces and both engines. */
import { expect, test } from 'vitest'
import { meanwhile } from '../support/meanwhile.ts'
import { serveBoth } from './both.ts'

const { service, client, standIn } = await serveBoth()
const owner = await client.createOwner.mutate({ name: 'Ada' })

let serial = 0
const addVisit = async () => {
  const visit = { reference: `V-${serial++}`, at: new Date(0) }
  return Number((await client.createVisit.mutate({ ownerId: owner.id, ...visit })).id)
}
const newTour = (visitIds: number[]) => ({
  ...{ driver: 'Eve', from: '2026-01-02T08:00:00.000Z', until: '2026-01-02T12:00:00.000Z' },
  visitIds,
})
const plan = (body: object, headers = {}) => service.rest('POST', '/tours', { body, headers })
const act = (id: unknown, action: string) => service.rest('POST', `/tours/${id}/${action}`)
const idOf = ({ body }: { body: unknown }) => (body as { id: number }).id

test('a tour is the same on both surfaces, with its visits in their order', async () => {
  const visitIds = [await addVisit(), await addVisit()].reverse()
  const body = newTour(visitIds)
  const made = await plan(body, { 'idempotency-key': '"one"' })
  const { driver, from, until } = body
  const whole = { id: idOf(made), driver, vehicle: 'car', from, until, state: 'planned', visitIds }
  expect([made.status, made.text]).toEqual([201, JSON.stringify(whole)])
  expect((await plan(body, { 'idempotency-key': '"one"' })).text).toBe(made.text)
  expect((await service.rest('GET', `/tours/${whole.id}`)).text).toBe(made.text)
  const read = await client.getTour.query({ tourId: whole.id })
  expect(read.visitIds).toEqual(visitIds.map(BigInt))
  expect(read.from).toEqual(new Date(from))
})

test('a tour goes through its states in their order, once each', async () => {
  const id = idOf(await plan(newTour([await addVisit()])))
  expect((await act(id, 'finish')).status).toBe(409)
  const starts = await Promise.all([act(id, 'start'), act(id, 'start')])
  expect(starts.map(({ status }) => status).sort()).toEqual([200, 409])
  expect((await act(id, 'finish')).body).toMatchObject({ state: 'finished' })
  for (const action of ['start', 'finish']) expect((await act(id, action)).status).toBe(409)
  expect((await act(404, 'start')).status).toBe(404)
})

test('each rule of the document is refused with its message, and changes nothing', async () => {
  const visit = await addVisit()
  const good = newTour([visit])
  const says = async (body: object) => {
    const { status, body: error } = await plan(body)
    return [status, (error as { message: string }).message]
  }
  const { until } = good
  expect(await says({ ...good, from: until })).toEqual([400, 'until must be after from'])
  const twice = { ...good, visitIds: [visit, visit] }
  expect(await says(twice)).toEqual([400, 'visitIds must not name a visit twice'])
  const missing = { ...good, visitIds: [visit, 9_999_999] }
  expect(await says(missing)).toEqual([404, 'One of these visits does not exist'])
  await client.closeVisit.mutate({ ownerId: owner.id, visitId: visit })
  expect(await says(good)).toEqual([409, 'One of these visits is closed'])
  const stops = await service.sql(`select * from stops where visit_id = ${visit}`)
  expect(stops).toEqual([])
})

test('the list is by the time at which tours begin, and a client of tRPC goes on after the last one seen', async () => {
  const visitIds = [await addVisit()]
  // In the order of weekdays, or of the texts of other zones, it would be another one.
  const times = ['2026-03-01T10:00:00Z', '2026-02-28T23:00:00-05:00', '2026-03-01T10:00:00.001Z']
  const ids: number[] = []
  for (const from of [...times, ...times]) {
    ids.push(idOf(await plan({ ...newTour(visitIds), from, until: '2026-03-02T00:00:00Z' })))
  }
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = ids
  const byLink: unknown[] = []
  for (let path: string | undefined = '/tours?limit=2'; path; ) {
    const page = await service.rest('GET', path)
    byLink.push(...(page.body as { id: number; visitIds: number[] }[]))
    path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
  }
  expect(byLink.slice(-6)).toMatchObject([b, e, a, d, c, f].map((id) => ({ id, visitIds })))
  const seen: number[] = []
  let cursor: string | undefined
  do {
    const page = await client.listTours.query({ limit: 1, cursor })
    seen.push(...page.map(({ id }) => Number(id)))
    const last = page.at(-1)
    cursor = last && `${last.from.toISOString()} ${last.id}`
  } while (cursor)
  expect(seen).toEqual(byLink.map((tour) => (tour as { id: number }).id))
  for (const wrong of [
    '7',
    '2026-03-01 7',
    '2026-03-01T10:00:00.000Z',
    '2026-02-30T10:00:00.000Z 7',
  ]) {
    const answer = await service.rest('GET', `/tours?cursor=${encodeURIComponent(wrong)}`)
    expect(answer.text).toContain('cursor must be the from, a space and the id of one of the tours')
  }
  const end = await service.rest(
    'GET',
    '/tours?cursor=9999-12-31T23:59:59.999Z%209999999999999999999',
  )
  expect([end.status, end.text]).toEqual([200, '[]'])
})

test('a visit that another transaction is closing, or removes, is on no new tour', async () => {
  const visits = [await addVisit(), await addVisit()] as const
  // In the other order of their ids: all are locked by one statement, in one order.
  const body = newTour([...visits].reverse())
  const close = `update visits set closed_at = 0 where id = ${visits[0]}`
  const closed = await meanwhile(service.sql, [close], () => plan(body))
  expect(closed).toMatchObject({ status: 409, body: { message: 'One of these visits is closed' } })
  const remove = `delete from visits where id = ${visits[1]}`
  const gone = await meanwhile(service.sql, [remove], () => plan(newTour([visits[1]])))
  expect(gone.status).toBe(404)
})

test('a removed visit is on no tour any more', async () => {
  const [first, second] = [await addVisit(), await addVisit()]
  const id = idOf(await plan(newTour([first, second])))
  await client.removeVisit.mutate({ ownerId: owner.id, visitId: first })
  expect((await service.rest('GET', `/tours/${id}`)).body).toMatchObject({ visitIds: [second] })
})

test.each([
  ['the service', client],
  ['the stand-in', standIn],
])('%s: tours by a client', async (_, petstore) => {
  const { id: ownerId } = await petstore.createOwner.mutate({ name: 'Zoe' })
  const visit = { ownerId, reference: `S-${serial++}`, at: new Date(0) }
  const { id: visitId } = await petstore.createVisit.mutate(visit)
  const [from, until] = [new Date('9999-01-01T08:00:00Z'), new Date('9999-01-01T12:00:00Z')]
  const tour = await petstore.planTour.mutate({ driver: 'Eve', from, until, visitIds: [visitId] })
  expect(tour).toMatchObject({ vehicle: 'car', state: 'planned', visitIds: [visitId] })
  const missing = { driver: 'Eve', from, until, visitIds: [visitId, 9_999_999] }
  await expect(petstore.planTour.mutate(missing)).rejects.toThrow('does not exist')
  const earlier = { cursor: `9999-01-01T07:59:59.999Z ${tour.id}` }
  expect(await petstore.listTours.query(earlier)).toEqual([tour])
  const one = { tourId: tour.id }
  await expect(petstore.finishTour.mutate(one)).rejects.toThrow('This tour has not started')
  expect(await petstore.startTour.mutate(one)).toEqual({ ...tour, state: 'started' })
  await expect(petstore.startTour.mutate(one)).rejects.toThrow('This tour has started already')
  await petstore.finishTour.mutate(one)
  await petstore.removeVisit.mutate({ ownerId, visitId })
  expect(await petstore.getTour.query(one)).toMatchObject({ state: 'finished', visitIds: [] })
})
