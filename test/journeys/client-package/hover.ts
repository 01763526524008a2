/** Names for which editor.test.ts requests the hover texts. */
import {
  type AppRouter,
  createPetstoreClient,
  type NewPet,
  type Pet,
} from '@petstore-catalogue/petstore/client'
import { QueryClient } from '@tanstack/react-query'
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query'

const client = createPetstoreClient({ url: 'https://pets.example/trpc', apiKey: '' })
const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient: new QueryClient() })

const pets = await client.listPets.query({ limit: 5, status: 'sold', cursor: 7 })
const made = await client.createPet.mutate({ name: 'Rex', categoryId: 3 })
const found = await client.getPet.query({ petId: 7 })
const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'pending' }

export const options = [trpc.listPets.queryOptions(), trpc.getPet.queryOptions({ petId: 7 })]
export const describe = (pet: Pet) => [
  pet.categoryId,
  pets[0]?.status,
  made.id,
  found.name,
  rex.name,
]
