import { describe, expect, test } from 'vitest'
import { engine } from '../support/database.ts'
import { errorOf, serviceForFile } from '../support/service.ts'
import type { Sql } from '../support/sql.ts'

const service = await serviceForFile()
await service.trpc.createPet.mutate({ name: 'Rex', categoryId: 1 })

test('tRPC rejects a number that may have lost digits, and the message has the remedy', async () => {
  for (const petId of [2 ** 53, -(2 ** 53)]) {
    expect(await errorOf(service.trpc.getPet.query({ petId }))).toEqual({
      code: 'BAD_REQUEST',
      status: 400,
      message: 'petId is a number too great to be exact: pass a bigint',
    })
  }
})

describe('ids', () => {
  test.each([9007199254740993n, 2n ** 63n - 2n])('%s', async (id) => {
    await nextId(service.sql, id)
    const made = await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
    expect(made.text).toBe(`{"id":${id},"name":"Rex","categoryId":1,"status":"available"}`)
    expect(made.headers.get('location')).toBe(`${service.baseUrl}/pets/${id}`)
    expect((await service.rest('GET', `/pets/${id}`)).text).toBe(made.text)

    const second = await service.trpc.createPet.mutate({ name: 'Max', categoryId: 1 })
    expect(second.id).toBe(id + 1n)
    expect(await service.trpc.getPet.query({ petId: id + 1n })).toEqual(second)

    const page = await service.rest('GET', `/pets?limit=1&cursor=${id - 1n}`)
    expect(page.text).toBe(`[${made.text}]`)
    expect(page.headers.get('link')).toBe(
      `<${service.baseUrl}/pets?limit=1&cursor=${id}>; rel="next"`,
    )
    expect(await service.trpc.listPets.query({ cursor: id })).toEqual([second])
  })
})

/** Sets the id of the next pet. */
async function nextId(sql: Sql, id: bigint): Promise<void> {
  if (engine === 'mysql') await sql(`alter table pets auto_increment = ${id}`)
  else await sql(`update sqlite_sequence set seq = ${id - 1n} where name = 'pets'`)
}
