/** listPets on REST: the Link to the next page, and the spelling of parameters. */
import { expect, test } from 'vitest'
import { storePets } from '../support/pets.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
expect((await service.rest('GET', '/pets')).text).toBe('[]')
const pets = Array.from({ length: 45 }, (_, index) => ({
  name: `Pet ${index + 1}`,
  categoryId: 1n,
  status: index % 9 === 0 ? ('sold' as const) : ('available' as const),
}))
await storePets(service.sql, pets)

const idsOf = (body: unknown) => (body as { id: number }[]).map(({ id }) => id)

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
