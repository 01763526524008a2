/** What the client promises its importers: precise types, and a hash for query keys with bigints. */
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { expect, expectTypeOf, test } from 'vitest'
import {
  type ApiError,
  createPetstoreClient,
  isApiError,
  type NewPet,
  type Pet,
  type PetStatus,
  type PetstoreInputs,
  type PetstoreOutputs,
  queryKeyHashFn,
} from './support/client.ts'
import type { AppRouter as ServedRouter } from './support/router.ts'

type Status = 'available' | 'pending' | 'sold'

test('the types are those of the interface', () => {
  const petstore = createPetstoreClient({ url: 'http://localhost/trpc', apiKey: '' })
  expectTypeOf<PetStatus>().toEqualTypeOf<Status>()
  expectTypeOf<Pet>().toEqualTypeOf<{
    id: bigint
    name: string
    categoryId: bigint
    status: Status
  }>()
  expectTypeOf<NewPet>().toEqualTypeOf<{
    name: string
    categoryId: number | bigint
    status?: Status | undefined
  }>()
  expectTypeOf<Extract<PetstoreInputs['listPets'], object>>().toEqualTypeOf<{
    limit?: number | undefined
    status?: Status | undefined
    cursor?: number | bigint | undefined
  }>()
  expectTypeOf(petstore.getPet.query).parameter(0).toEqualTypeOf<{ petId: number | bigint }>()
  expectTypeOf(petstore.createPet.mutate).parameter(0).toEqualTypeOf<NewPet>()
  expectTypeOf(petstore.listPets.query).returns.resolves.toEqualTypeOf<Pet[]>()
  expectTypeOf(petstore.getPet.query).returns.resolves.toEqualTypeOf<Pet>()
  expectTypeOf(petstore.createPet.mutate).returns.resolves.toEqualTypeOf<Pet>()
  expectTypeOf(isApiError).guards.toEqualTypeOf<ApiError>()
  expectTypeOf<ApiError['status']>().toEqualTypeOf<number>()
  expectTypeOf<'NOT_FOUND' | 'UNAUTHORIZED'>().toExtend<ApiError['code']>()
})

test('every procedure that is served is on the client, as it is served', () => {
  expectTypeOf<PetstoreInputs>().toEqualTypeOf<inferRouterInputs<ServedRouter>>()
  expectTypeOf<PetstoreOutputs>().toEqualTypeOf<inferRouterOutputs<ServedRouter>>()
})

test('queryKeyHashFn tells keys apart as the service does', () => {
  const hash = (input: unknown) => queryKeyHashFn([['getPet'], { input, type: 'query' }])
  expect(hash({ petId: 7n })).toBe(hash({ petId: 7 }))
  expect(hash({ petId: 7n })).not.toBe(hash({ petId: '7' }))
  const [one, other] = [9_007_199_254_740_992n, 9_007_199_254_740_993n]
  expect(hash({ petId: one })).not.toBe(hash({ petId: other }))
  expect(hash({ petId: other })).not.toBe(hash({ petId: String(other) }))
  expect(hash({ limit: 5, status: 'sold' })).toBe(hash({ status: 'sold', limit: 5 }))
  expect(hash({ limit: 5, status: undefined })).toBe(hash({ limit: 5 }))
})
