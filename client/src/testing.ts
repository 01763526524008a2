/** A stand-in for the service in tests of a frontend: its own router, with pets in memory, behind MSW. */
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { type HttpHandler, http } from 'msw'
import type { Deadline } from '../../db/deadline.ts'
import { type Auth, INVALID, MISSING, tokenOf } from '../../src/keys/auth.ts'
import { isReadOnlyKey } from '../../src/keys/format.ts'
import { NewPet as newPetSchema } from '../../src/petstore/pets/schema.ts'
import { appRouter } from '../../src/petstore/router.ts'
import type { NewPet } from './client.ts'
import { MAX_BATCH } from './encoding.ts'
import { idempotencyInMemory, petsInMemory } from './memory.ts'

export interface PetstoreHandlersOptions {
  /** The address that the client under test is given, such as `https://pets.example/trpc`. */
  url: string
  /** The animals that are there at first, with the ids 1, 2, 3, and so on; none unless given. */
  pets?: NewPet[]
  /**
   * The API keys that are valid; any, unless given. One that begins with `petstore_read_` may only
   * read, as with the service.
   */
  apiKeys?: string[]
}

/**
 * Handlers for MSW (https://mswjs.io), in Node and in browsers, that answer a client's calls as the
 * service does: the same inputs are refused, in the same words, and what is added is there until the
 * handlers are thrown away. Each call of this function begins anew. Throws ZodError for pets that the
 * service would refuse.
 */
export function petstoreHandlers({
  url,
  pets = [],
  apiKeys,
}: PetstoreHandlersOptions): HttpHandler[] {
  const stores = { pets: petsInMemory(pets.map((pet) => newPetSchema.parse(pet))) }
  const idempotency = idempotencyInMemory(stores)
  const seen: string[] = []

  function identify(authorization: string | null): Auth {
    const token = tokenOf(authorization ?? undefined)
    if (token === undefined) return MISSING
    if (token === '' || apiKeys?.includes(token) === false) return INVALID
    if (!seen.includes(token)) seen.push(token)
    return { kind: 'caller', keyId: BigInt(seen.indexOf(token)), readOnly: isReadOnlyKey(token) }
  }

  const address = url.replace(/\/$/, '')
  const endpoint = new URL(address, 'http://localhost').pathname
  const answer = ({ request }: { request: Request }) =>
    fetchRequestHandler({
      endpoint,
      req: request,
      router: appRouter,
      maxBatchSize: MAX_BATCH,
      createContext: ({ req }) => ({
        auth: identify(req.headers.get('authorization')),
        caller: undefined,
        deadline: {} as Deadline, // nothing in memory has to be waited for
        trace: undefined,
        stores,
        transact: (work) => work(stores), // one after another, and no work waits for anything
        idempotency,
        idempotencyHeader: req.headers.get('idempotency-key') ?? undefined,
        page: { next: undefined },
      }),
    })
  return [http.get(`${address}/*`, answer), http.post(`${address}/*`, answer)]
}
