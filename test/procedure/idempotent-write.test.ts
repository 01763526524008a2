/** `idempotentWrite` with several statements is atomic, with an Idempotency-Key and without. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { Pet } from '../../src/petstore/pets/schema.ts'
import { resources } from '../../src/petstore/resources.ts'
import { idempotentWrite } from '../../src/procedure/idempotent-write.ts'
import { int64Input } from '../../src/procedure/int64.ts'
import { keyedProcedure, router } from '../../src/procedure/procedure.ts'
import { restMeta } from '../../src/procedure/rest-meta.ts'
import { type Service, startService } from '../support/service.ts'

const example: Pet = { id: 42n, name: 'Rex', categoryId: 1n, status: 'available' }

const served = router({
  double: keyedProcedure
    .meta(
      restMeta({
        method: 'POST',
        path: '/pets/{petId}/double',
        repeatable: true,
        tag: 'pets',
        summary: 'Add two',
        description: 'Adds two.',
        example,
      }),
    )
    .input(z.object({ petId: int64Input({ description: 'Odd, or the second fails.' }) }))
    .output(Pet)
    .mutation(
      idempotentWrite(async ({ ctx, input: { petId } }) => {
        const { id: _, ...pet } = { ...example, categoryId: petId }
        const made = await ctx.stores.pets.create(pet, ctx.deadline)
        if (petId % 2n === 0n) throw new Error('The second fails')
        await ctx.stores.pets.create(pet, ctx.deadline)
        return made
      }),
    ),
})

let service: Service
beforeAll(async () => {
  service = await startService({}, { resources: { ...resources, router: served } })
})
afterAll(() => service.stop())
beforeEach(() => service.sql('delete from pets'))

test.each([
  ['with a key', '"double"'],
  ['without a key', undefined],
])('both statements take effect, or neither: %s', async (_, key) => {
  const call = (petId: number) =>
    service.rest('POST', `/pets/${petId}/double`, { headers: { 'idempotency-key': key } })
  const count = async () => (await service.sql('select id from pets')).length
  expect((await call(2)).status).toBe(500)
  expect(await count()).toBe(0)
  expect((await call(1)).status).toBe(200)
  expect(await count()).toBe(2)
})
