/** A relation of many to many: its links and their count are exact, whatever happens at once. */
import { beforeEach, expect, test } from 'vitest'
import { meanwhile } from '../support/meanwhile.ts'
import { serveBoth } from './both.ts'
import { PIECE } from './helpers/store.ts'

const { service, client, standIn } = await serveBoth()
await service.sql("insert into owners (id, name, closed) values (1, 'Ada', 0)")

let serial = 0
const addVisit = async () => {
  const body = { reference: `V-${serial++}`, at: '2026-01-02T03:04:05Z' }
  const { id } = (await service.rest('POST', '/owners/1/visits', { body })).body as { id: number }
  return id
}
const addHelper = async () => {
  const { body } = await service.rest('POST', '/helpers', { body: { name: 'Eve' } })
  return (body as { id: number }).id
}
const link = (method: 'PUT' | 'DELETE', visit: number, helper: number) =>
  service.rest(method, `/owners/1/visits/${visit}/helpers/${helper}`)
const list = async (helper: number, limit = 100) => {
  const ids: number[] = []
  for (let path: string | undefined = `/helpers/${helper}/visits?limit=${limit}`; path; ) {
    const page = await service.rest('GET', path)
    ids.push(...(page.body as { id: number }[]).map(({ id }) => id))
    path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
  }
  return ids
}
const countOf = async (helper: number) =>
  Number((await client.getHelper.query({ helperId: helper })).visits)

let visits: number[]
let helper: number
beforeEach(async () => {
  visits = [await addVisit(), await addVisit(), await addVisit()]
  helper = await addHelper()
})

/** Expects that each link has its visit and its helper, and that each helper counts its links. */
async function expectExact(): Promise<void> {
  const links = '(select count(*) from links where helper_id = helpers.id)'
  const wrong = await service.sql(`select * from helpers where visits <> ${links}`)
  const orphans = await service.sql(`select * from links
    where visit_id not in (select id from visits)
    or helper_id not in (select id from helpers)`)
  expect([wrong, orphans]).toEqual([[], []])
}

test('a link is added once and removed once, on both surfaces, and counted', async () => {
  const [first = 0, second = 0, third = 0] = visits
  for (const visit of [third, first, first]) {
    expect(await link('PUT', visit, helper)).toMatchObject({ status: 204, text: '' })
  }
  await client.addHelperToVisit.mutate({ ownerId: 1, visitId: second, helperId: helper })
  expect([await list(helper, 1), await countOf(helper)]).toEqual([visits, 3])
  const items = await client.listVisitsOfHelper.query({ helperId: helper, cursor: first })
  const latest = await client.listVisits.query({ ownerId: 1, limit: 2 })
  expect(items).toEqual(latest.reverse())
  for (let time = 0; time < 2; time++) {
    expect((await link('DELETE', second, helper)).status).toBe(204)
  }
  expect([await list(helper), await countOf(helper)]).toEqual([[first, third], 2])
})

test('what is missing is named', async () => {
  const [visit = 0] = visits
  for (const method of ['PUT', 'DELETE'] as const) {
    const missing = (what: string) => ({
      status: 404,
      body: { message: `There is no ${what} with the id 9999` },
    })
    expect(await link(method, 9_999, helper)).toMatchObject(missing('visit'))
    expect(await link(method, visit, 9_999)).toMatchObject(missing('helper'))
  }
  const elsewhere = await service.rest('PUT', `/owners/2/visits/${visit}/helpers/${helper}`)
  expect(elsewhere.status).toBe(404)
  expect((await service.rest('GET', '/helpers/9999/visits')).status).toBe(404)
  await expectExact()
})

test('a visit or a helper that is removed loses its links, in pieces if there are many', async () => {
  const [visit = 0] = visits
  const other = await addHelper()
  for (const one of [helper, other]) await link('PUT', visit, one)
  expect((await service.rest('DELETE', `/owners/1/visits/${visit}`)).status).toBe(204)
  expect([await countOf(helper), await countOf(other)]).toEqual([0, 0])
  const count = 2 * PIECE + 1
  const links = Array.from({ length: count }, (_, at) => `(${1e6 + at}, ${helper})`)
  await service.sql(`insert into links (visit_id, helper_id) values ${links.join()}`)
  await service.sql(`update helpers set visits = ${count} where id = ${helper}`)
  const removals = [1, 2].map(() => service.rest('DELETE', `/helpers/${helper}`))
  expect((await Promise.all(removals)).map(({ status }) => status).sort()).toEqual([204, 404])
  expect((await service.rest('GET', `/helpers/${helper}`)).status).toBe(404)
  await expectExact()
})

test('a link to what another transaction removes is 404, and is not stored', async () => {
  const [visit = 0, second = 0] = visits
  const noVisit = [`delete from visits where id = ${visit}`]
  const toVisit = await meanwhile(service.sql, noVisit, () => link('PUT', visit, helper))
  expect(toVisit.status).toBe(404)
  const noHelper = [`delete from helpers where id = ${helper}`]
  const toHelper = await meanwhile(service.sql, noHelper, () => link('PUT', second, helper))
  expect(toHelper.status).toBe(404)
  await expectExact()
})

test('a link that another transaction removes is counted once, and one that it adds goes with the visit or the helper', async () => {
  const [visit = 0, second = 0, third = 0] = visits
  await link('PUT', visit, helper)
  await link('PUT', second, helper)
  const lock = (id: number) => `update visits set id = id where id = ${id}`
  const change = (by: string) => `update helpers set visits = visits ${by} where id = ${helper}`
  const beside = async (statements: string[], call: () => ReturnType<typeof service.rest>) => {
    expect((await meanwhile(service.sql, statements, call)).status).toBe(204)
    await expectExact()
  }
  const remove = (id: number) => () => service.rest('DELETE', `/owners/1/visits/${id}`)
  const removed = `delete from links where visit_id = ${visit}`
  await beside([lock(visit), change('- 1'), removed], () => link('DELETE', visit, helper))
  // As a piece of the removal of a helper, which does not lock the visit.
  const piece = `delete from links where visit_id = ${second}`
  await beside([change('- 1'), piece], remove(second))
  const added = (id: number) => `insert into links (visit_id, helper_id) values (${id}, ${helper})`
  await beside([lock(visit), change('+ 1'), added(visit)], remove(visit))
  const removal = () => service.rest('DELETE', `/helpers/${helper}`)
  await beside([lock(third), change('+ 1'), added(third)], removal)
})

test.each([
  ['the service', client],
  ['the stand-in', standIn],
])('%s: helpers and their links by a client', async (_, petstore) => {
  const { id: ownerId } = await petstore.createOwner.mutate({ name: 'Zoe' })
  const newVisit = { ownerId, at: new Date(0) }
  const first = await petstore.createVisit.mutate({ ...newVisit, reference: `S-${serial++}` })
  const second = await petstore.createVisit.mutate({ ...newVisit, reference: `S-${serial++}` })
  const { id: helperId } = await petstore.createHelper.mutate({ name: 'Eve' })
  const link = (visitId: bigint) => ({ ownerId, visitId, helperId })
  for (const { id } of [second, first, first]) await petstore.addHelperToVisit.mutate(link(id))
  expect(await petstore.getHelper.query({ helperId })).toMatchObject({ name: 'Eve', visits: 2n })
  expect(await petstore.listVisitsOfHelper.query({ helperId })).toEqual([first, second])
  await petstore.removeHelperOfVisit.mutate(link(second.id))
  await petstore.removeVisit.mutate({ ownerId, visitId: first.id })
  expect(await petstore.getHelper.query({ helperId })).toMatchObject({ visits: 0n })
  await petstore.removeHelper.mutate({ helperId })
  await expect(petstore.addHelperToVisit.mutate(link(second.id))).rejects.toThrow('no helper')
})
