/** A relation of many to many: its links and their count are exact, whatever happens at once. */
import { beforeEach, expect, test } from 'vitest'
import { meanwhile } from '../../support/meanwhile.ts'
import { serviceForFile, trpcClient } from '../../support/service.ts'
import { up, visitResources, type visitRouter } from '../router.ts'
import { PIECE } from './store.ts'

const service = await serviceForFile({}, { resources: visitResources, prepare: up })
const client = trpcClient<typeof visitRouter>(service.origin, service.key)
await service.sql("insert into test_owners (id, name, closed) values (1, 'Ada', 0)")

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
  const links = '(select count(*) from test_links where helper_id = test_helpers.id)'
  const wrong = await service.sql(`select * from test_helpers where visits <> ${links}`)
  const orphans = await service.sql(`select * from test_links
    where visit_id not in (select id from test_visits)
    or helper_id not in (select id from test_helpers)`)
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
  await service.sql(`insert into test_links (visit_id, helper_id) values ${links.join()}`)
  await service.sql(`update test_helpers set visits = ${count} where id = ${helper}`)
  const removals = [1, 2].map(() => service.rest('DELETE', `/helpers/${helper}`))
  expect((await Promise.all(removals)).map(({ status }) => status).sort()).toEqual([204, 404])
  expect((await service.rest('GET', `/helpers/${helper}`)).status).toBe(404)
  await expectExact()
})

test('a link to what another transaction removes is 404, and is not stored', async () => {
  const [visit = 0, second = 0] = visits
  const noVisit = [`delete from test_visits where id = ${visit}`]
  const toVisit = await meanwhile(service.sql, noVisit, () => link('PUT', visit, helper))
  expect(toVisit.status).toBe(404)
  const noHelper = [`delete from test_helpers where id = ${helper}`]
  const toHelper = await meanwhile(service.sql, noHelper, () => link('PUT', second, helper))
  expect(toHelper.status).toBe(404)
  await expectExact()
})

test('a link that another transaction removes is counted once, and one that it adds goes with the visit', async () => {
  const [visit = 0, second = 0] = visits
  await link('PUT', visit, helper)
  await link('PUT', second, helper)
  const lock = (id: number) => `update test_visits set id = id where id = ${id}`
  const change = (by: string) =>
    `update test_helpers set visits = visits ${by} where id = ${helper}`
  const beside = async (statements: string[], call: () => ReturnType<typeof service.rest>) => {
    expect((await meanwhile(service.sql, statements, call)).status).toBe(204)
    await expectExact()
  }
  const remove = (id: number) => () => service.rest('DELETE', `/owners/1/visits/${id}`)
  const removed = `delete from test_links where visit_id = ${visit}`
  await beside([lock(visit), change('- 1'), removed], () => link('DELETE', visit, helper))
  // As a piece of the removal of a helper, which does not lock the visit.
  const piece = `delete from test_links where visit_id = ${second}`
  await beside([change('- 1'), piece], remove(second))
  const added = `insert into test_links (visit_id, helper_id) values (${visit}, ${helper})`
  await beside([lock(visit), change('+ 1'), added], remove(visit))
})

test('50 clients at once leave no link without a visit or a helper, and no wrong count', async () => {
  const helpers = [helper, await addHelper(), await addHelper(), await addHelper()]
  const statuses = new Set<number>()
  const one = <Item>(items: Item[]) => items[Math.floor(Math.random() * items.length)] as Item
  const calls = [
    () => link('PUT', one(visits), one(helpers)),
    () => link('PUT', one(visits), one(helpers)),
    () => link('DELETE', one(visits), one(helpers)),
    async () => {
      visits.push(await addVisit())
      return await service.rest('DELETE', `/owners/1/visits/${one(visits)}`)
    },
    async () => {
      helpers.push(await addHelper())
      return await service.rest('DELETE', `/helpers/${one(helpers)}`)
    },
  ]
  const clients = Array.from({ length: 50 }, async () => {
    for (let call = 0; call < 10; call++) statuses.add((await one(calls)()).status)
  })
  await Promise.all(clients)
  expect([...statuses].sort()).toEqual([204, 404])
  await expectExact()
})
