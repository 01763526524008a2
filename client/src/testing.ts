/**
 * A stand-in for the service in tests of a frontend: the service's router behind MSW, with pets in
 * memory.
 */
import type { HttpHandler } from 'msw'
import { NewPet as newPetSchema } from '../../src/petstore/pets/schema.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import type { NewPet } from './client.ts'
import { handlersOf } from './memory/handlers.ts'
import { sharedInMemory } from './memory/shared.ts'

export interface PetstoreHandlersOptions {
  /** The `url` of the client under test, such as `https://pets.example/trpc`. */
  url: string
  /** The animals at the start, with the ids 1, 2, 3, and so on; none by default. */
  pets?: NewPet[]
  /**
   * The valid API keys; every key by default. A key that begins with `petstore_read_` is read-only,
   * as with the service.
   */
  apiKeys?: string[]
}

/**
 * Returns handlers for MSW (https://mswjs.io), in Node and in browsers. They return what the service
 * returns: they reject the same inputs with the same messages, and keep the animals that calls add.
 * Each call of this function starts with its own animals. Throws ZodError for pets that the service
 * would reject.
 */
export function petstoreHandlers({
  url,
  pets = [],
  apiKeys,
}: PetstoreHandlersOptions): HttpHandler[] {
  const shared = sharedInMemory(pets.map((pet) => newPetSchema.parse(pet)))
  return handlersOf(appRouter, shared, { url, apiKeys })
}
