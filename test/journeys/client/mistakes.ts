/** Exactly the lines that end in "wrong" must not compile. */
import { createPetstoreClient, isApiError, type Pet } from '@petstore-catalogue/petstore/client'

const petstore = createPetstoreClient({ url: 'http://localhost/trpc', apiKey: '' })

export const mistakes = [
  petstore.listPets.query({ status: 'lost' }), // wrong
  petstore.listPets.query({ limit: '5' }), // wrong
  petstore.createPet.mutate({ categoryId: 3 }), // wrong
  petstore.createPet.mutate({ name: 'Rex', categoryId: '3' }), // wrong
  petstore.getPet.query({ petId: '7' }), // wrong
  petstore.getPet.query(), // wrong
  petstore.fetchPet.query({ petId: 7 }), // wrong
  createPetstoreClient({ url: 'http://localhost/trpc' }), // wrong
]

export function misread(pet: Pet, error: unknown): unknown[] {
  const id: number = pet.id // wrong
  if (isApiError(error)) return [error.code === 'NOT_FUOND'] // wrong
  return [id, pet.nickname] // wrong
}
