/** The types that a TypeScript frontend gets, held where they are. */
import type { TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { expectTypeOf, test } from 'vitest'
import type { AppRouter } from '../src/router.ts'

type Inputs = inferRouterInputs<AppRouter>
type Outputs = inferRouterOutputs<AppRouter>
type Client = TRPCClient<AppRouter>

type PetStatus = 'available' | 'pending' | 'sold'
interface Pet {
  id: bigint
  name: string
  categoryId: bigint
  status: PetStatus
}

test('listPets', () => {
  type Input = {
    limit?: number | undefined
    status?: PetStatus | undefined
    cursor?: number | bigint | undefined
  }
  // biome-ignore lint/suspicious/noConfusingVoidType: so tRPC says that there may be no input
  expectTypeOf<Inputs['listPets']>().toEqualTypeOf<Input | undefined | void>()
  expectTypeOf<Outputs['listPets']>().toEqualTypeOf<Pet[]>()
  expectTypeOf<Client['listPets']['query']>().returns.resolves.toEqualTypeOf<Pet[]>()
  expectTypeOf<Client['listPets']['query']>().toBeCallableWith()
  expectTypeOf<Client['listPets']['query']>().toBeCallableWith({ limit: 7, status: 'sold' })
})

test('createPet', () => {
  expectTypeOf<Inputs['createPet']>().toEqualTypeOf<{
    name: string
    categoryId: number | bigint
    status?: PetStatus | undefined
  }>()
  expectTypeOf<Outputs['createPet']>().toEqualTypeOf<Pet>()
  expectTypeOf<Client['createPet']['mutate']>().returns.resolves.toEqualTypeOf<Pet>()
  expectTypeOf<Client['createPet']>().not.toHaveProperty('query')
})

test('getPet', () => {
  expectTypeOf<Inputs['getPet']>().toEqualTypeOf<{ petId: number | bigint }>()
  expectTypeOf<Outputs['getPet']>().toEqualTypeOf<Pet>()
  expectTypeOf<Client['getPet']['query']>().parameter(0).toEqualTypeOf<{ petId: number | bigint }>()
  expectTypeOf<Client['getPet']['query']>().returns.resolves.toEqualTypeOf<Pet>()
})

test('an input of the wrong type does not compile', () => {
  const call = (_: Client) => [
    // @ts-expect-error a text is no id
    () => _.getPet.query({ petId: '7' }),
    // @ts-expect-error a limit is a number
    () => _.listPets.query({ limit: 7n }),
    // @ts-expect-error there is no such status
    () => _.listPets.query({ status: 'free' }),
    // @ts-expect-error a pet has a category
    () => _.createPet.mutate({ name: 'Rex' }),
    // @ts-expect-error a pet is given its id
    () => _.createPet.mutate({ name: 'Rex', categoryId: 3, id: 7 }),
  ]
  expectTypeOf(call).toBeFunction()
})
