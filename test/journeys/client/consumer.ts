/** A consumer of the package, which client.test.ts compiles in strict mode and runs. */

import {
  type AppRouter,
  createPetstoreClient,
  isApiError,
  type NewPet,
  type Pet,
  type PetStatus,
  petstoreLinks,
  queryKeyHashFn,
  transformer,
} from '@petstore-catalogue/petstore/client'
import { createTRPCClient, httpBatchStreamLink, httpLink } from '@trpc/client'

/** Uses every part of the package, and returns the results. */
export async function visit(url: string, apiKey: string): Promise<string[]> {
  const petstore = createPetstoreClient({ url, apiKey })
  const status: PetStatus = 'pending'
  const rex: NewPet = { name: 'Rex', categoryId: 9_007_199_254_740_993n, status }
  const made: Pet = await petstore.createPet.mutate(rex)
  const id: bigint = made.id
  const [first] = await petstore.listPets.query({ limit: 1, cursor: id - 1n, status })
  const same = await petstore.getPet.query({ petId: Number(id) })

  const own = createTRPCClient<AppRouter>({
    links: petstoreLinks({
      url,
      apiKey,
      batchLink: httpBatchStreamLink,
      headers: async () => new Headers({ 'X-Gateway': 'open' }),
      fetch: (input, init) => fetch(input, { ...init, cache: 'no-store' }),
    }),
  })
  const authorization = `Bearer ${apiKey}`
  const bare = createTRPCClient<AppRouter>({
    links: [httpLink({ url, transformer, headers: { authorization } })],
  })
  const [all, others] = [await own.listPets.query(), await bare.listPets.query()]

  const refused = await petstore.createPet.mutate({ ...rex, name: '' }).catch((error: unknown) => {
    if (!isApiError(error)) throw error
    return `${error.code} ${error.status} ${error.fields.name}`
  })
  return [
    `${made.name} ${made.categoryId} ${made.status}`,
    `${first?.id === id} ${same.id === id} ${all.length} ${others.length}`,
    String(refused),
    queryKeyHashFn([{ petId: id }]),
  ]
}
