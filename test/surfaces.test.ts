/** Both surfaces agree: one table of inputs, through REST and through a real tRPC client. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, type Service, startService } from './support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

test('createPet, getPet, listPets', async () => {
  const made = await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })
  expect(made.status).toBe(201)
  expect(made.headers.get('location')).toBe(`${service.baseUrl}/pets/1`)
  expect(made.body).toEqual({ id: 1, name: 'Rex', categoryId: 3, status: 'available' })
  expect(await service.trpc.getPet.query({ petId: 1 })).toEqual({
    id: 1n,
    name: 'Rex',
    categoryId: 3n,
    status: 'available',
  })
  expect(await errorOf(service.trpc.getPet.query({ petId: 99 }))).toMatchObject({
    code: 'NOT_FOUND',
    status: 404,
  })
})
