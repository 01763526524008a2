/** Paging lists each pet once and in order, for any pets and any limit, also during creations. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PetStatus } from '../../src/petstore/pets/schema.ts'
import { storePets } from '../support/pets.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

const statuses = fc.array(fc.constantFrom<PetStatus>('available', 'pending', 'sold'), {
  maxLength: 60,
})
const limits = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 100 }))
const filters = fc.constantFrom<PetStatus | undefined>(undefined, 'available', 'sold')

/**
 * The ids of all pages of REST, by the Link headers; `meanwhile` runs between two pages. Only a first page may be
 * empty: the last one has no Link, also where it is full.
 */
async function byLinks(query: string, meanwhile: () => Promise<unknown>): Promise<bigint[]> {
  const ids: bigint[] = []
  for (let path: string | undefined = `/pets?${query}`; path; await meanwhile()) {
    const { body, headers } = await service.rest('GET', path)
    if (ids.length > 0) expect(body, path).not.toEqual([])
    ids.push(...(body as { id: number }[]).map(({ id }) => BigInt(id)))
    path = headers
      .get('link')
      ?.match(/<(.+)>; rel="next"/)?.[1]
      ?.slice(service.baseUrl.length)
  }
  return ids
}

/** The ids of all pages of tRPC, by the cursors, as an infinite query does. */
async function byCursor(
  input: { limit: number; status?: PetStatus },
  meanwhile: () => Promise<unknown>,
): Promise<bigint[]> {
  const ids: bigint[] = []
  for (;;) {
    const cursor = ids.at(-1)
    const page = await service.trpc.listPets.query({
      ...input,
      ...(cursor !== undefined && { cursor }),
    })
    if (page.length === 0) return ids
    ids.push(...page.map(({ id }) => id))
    await meanwhile()
  }
}

test.each([
  ['at rest', 0],
  ['while pets are being added', 3],
])('each pet once, in order, %s', async (_, added) => {
  await fc.assert(
    fc.asyncProperty(statuses, limits, filters, async (pets, limit, status) => {
      await service.sql('delete from pets')
      const insert = (status: PetStatus) =>
        storePets(service.sql, [{ name: 'Rex', categoryId: 1n, status }])
      await storePets(
        service.sql,
        pets.map((status) => ({ name: 'Rex', categoryId: 1n, status })),
      )
      const stored = await service.sql('select id, status from pets order by id')
      expect(stored.map((row) => row.status)).toEqual(pets)
      const expected = stored
        .filter((row) => status === undefined || row.status === status)
        .map(({ id }) => id)
      let left = 0
      const addOne = async () => {
        if (left-- > 0) await insert(status ?? 'pending')
      }
      const query = new URLSearchParams({ limit: String(limit), ...(status && { status }) })
      const input = { limit, ...(status && { status }) }
      for (const visit of [() => byLinks(String(query), addOne), () => byCursor(input, addOne)]) {
        left = added
        const ids = await visit()
        expect(ids.filter((id) => expected.includes(id))).toEqual(expected)
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => (a < b ? -1 : 1)))
        if (added === 0) expect(ids).toEqual(expected)
      }
    }),
    // A last page that is full.
    { numRuns: 15, examples: [[['available', 'sold', 'sold'], 3, undefined]] },
  )
})
