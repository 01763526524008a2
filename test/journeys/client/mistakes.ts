/** Exactly the lines that end in "wrong" must not compile. */
import {
  createPetstoreClient,
  isApiError,
  type Pet,
  petstoreLinks,
} from '@petstore-catalogue/petstore/client'
import { httpBatchLink, httpLink } from '@trpc/client'

const options = { url: 'http://localhost/trpc', apiKey: '' }
const petstore = createPetstoreClient(options)

export const mistakes = [
  petstore.listPets.query({ status: 'lost' }), // wrong
  petstore.listPets.query({ limit: '5' }), // wrong
  petstore.createPet.mutate({ categoryId: 3 }), // wrong
  petstore.createPet.mutate({ name: 'Rex', categoryId: '3' }), // wrong
  petstore.getPet.query({ petId: '7' }), // wrong
  petstore.getPet.query(), // wrong
  petstore.fetchPet.query({ petId: 7 }), // wrong
  createPetstoreClient({ url: 'http://localhost/trpc' }), // wrong
  petstoreLinks({ ...options, fetch: window.fetch, batchLink: httpBatchLink, headers: undefined }),
  petstoreLinks({ ...options, fetch: () => 'a text' }), // wrong
  petstoreLinks({ ...options, headers: { 'X-Gateway': 5 } }), // wrong
  petstoreLinks({ ...options, headers: async () => 'X-Gateway: open' }), // wrong
  petstoreLinks({ ...options, batchLink: httpLink }), // wrong
]

export function misread(pet: Pet, error: unknown): unknown[] {
  const id: number = pet.id // wrong
  if (isApiError(error)) return [error.code === 'NOT_FUOND'] // wrong
  return [id, pet.nickname] // wrong
}
