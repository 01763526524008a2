/** listPets on REST: defaults, order, filter and paging. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storePets } from '../support/pets.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
  expect((await service.rest('GET', '/pets')).text).toBe('[]')
  const pets = Array.from({ length: 45 }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: 1n,
    status: index % 9 === 0 ? ('sold' as const) : ('available' as const),
  }))
  await storePets(service.sql, pets)
})
afterAll(() => service.stop())

const idsOf = (body: unknown) => (body as { id: number }[]).map(({ id }) => id)
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

test('the default is 20 pets by ascending id, each with its four fields', async () => {
  const { status, body } = await service.rest('GET', '/pets')
  expect(status).toBe(200)
  expect(idsOf(body)).toEqual(range(1, 20))
  expect((body as unknown[])[1]).toEqual({
    id: 2,
    name: 'Pet 2',
    categoryId: 1,
    status: 'available',
  })
})

test.each([
  ['', 'cursor=20'],
  ['?limit=44', 'limit=44&cursor=44'],
  ['?limit=45', null],
  ['?limit=100', null],
  ['?cursor=24', 'cursor=44'],
  ['?cursor=25', null],
  ['?cursor=45', null],
  ['?status=sold', null],
  ['?status=sold&limit=4', 'status=sold&limit=4&cursor=28'],
  ['?status=sold&limit=5', null],
  ['?status=pending', null],
  ['?limit=1&colour=red', 'limit=1&cursor=1'],
])('/pets%s has a Link to the next page only if there is one', async (query, expected) => {
  const link = (await service.rest('GET', `/pets${query}`)).headers.get('link')
  if (expected === null) {
    expect(link).toBeNull()
    return
  }
  const [, address] = link?.match(/^<(.+)>; rel="next"$/) ?? []
  const url = new URL(address ?? '')
  expect(`${url.origin}${url.pathname}`).toBe(`${service.baseUrl}/pets`)
  const sorted = (text: string) => [...new URLSearchParams(text)].sort()
  expect([...url.searchParams].sort()).toEqual(sorted(expected))
})

test.each([
  [1, ''],
  [7, ''],
  [20, ''],
  [44, ''],
  [2, '&status=sold'],
])('following the links with limit %i%s visits each pet once, in order', async (limit, filter) => {
  const seen: number[] = []
  let path: string | undefined = `/pets?limit=${limit}${filter}`
  while (path) {
    const { body, headers } = await service.rest('GET', path)
    expect(idsOf(body).length).toBeLessThanOrEqual(limit)
    seen.push(...idsOf(body))
    path = headers
      .get('link')
      ?.match(/<(.+)>/)?.[1]
      ?.replace(service.baseUrl, '')
  }
  expect(seen).toEqual(filter ? [1, 10, 19, 28, 37] : range(1, 45))
})

test('a repeated parameter or one without a value is rejected', async () => {
  for (const name of ['limit', 'status', 'cursor']) {
    for (const query of [`${name}=1&${name}=1`, `${name}=`, name]) {
      const { status, body } = await service.rest('GET', `/pets?${query}`)
      expect(status).toBe(400)
      expect(body).toMatchObject({ message: expect.stringMatching(`^${name} must be `) })
    }
  }
})

test('unknown and malformed query parameters are ignored', async () => {
  for (const query of ['?', '?&&', '?=', '?Limit=0', '?limit[]=0', '?limit%00=0', '?%ZZ=1']) {
    expect((await service.rest('GET', `/pets${query}`)).status).toBe(200)
  }
})

test('a parameter after 1100 others is read', async () => {
  const query = `${'a&'.repeat(1_100)}limit=1`
  expect((await service.rest('GET', `/pets?${query}`)).body).toHaveLength(1)
})

test('leading zeros of an integer are ignored', async () => {
  expect(idsOf((await service.rest('GET', '/pets?limit=002&cursor=0010')).body)).toEqual([11, 12])
})
