/**
 * A stand-in for the service in tests of a frontend: the service's router behind MSW, with pets in
 * memory.
 */
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { type HttpHandler, http } from 'msw'
import { Deadline } from '../../db/deadline.ts'
import { Problem, problem } from '../../src/errors/problem.ts'
import { type Caller, isReadOnlyKey, tokenOf } from '../../src/keys/key.ts'
import { NewPet as newPetSchema } from '../../src/petstore/pets/schema.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import type { CallsOfRequest, Operation } from '../../src/procedure/call.ts'
import { operationsOf } from '../../src/procedure/operations.ts'
import { routerOf, runOperation } from '../../src/surface/trpc/functions.ts'
import { MAX_BATCH, transformer } from '../../src/wire/encoding.ts'
import type { NewPet } from './client.ts'
import { sharedInMemory } from './memory/shared.ts'

const NEVER = new Deadline(Number.POSITIVE_INFINITY)

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
  // As in the service, each call of a batch is one of its own.
  const functionOf = (operation: Operation) => ({
    type: operation.type,
    call: async (request: CallsOfRequest, getInput: () => Promise<unknown>) =>
      runOperation(operation, request, await getInput()),
  })
  const operations = operationsOf(appRouter)
  const functions = Object.fromEntries(operations.map((one) => [one.name, functionOf(one)]))
  const router = routerOf(appRouter, functions)
  const seen: string[] = []

  function callerOf(authorization: string | null): Caller | Problem {
    const token = tokenOf(authorization ?? undefined)
    if (token === undefined) return problem('missingKey')
    if (token === '' || apiKeys?.includes(token) === false) return problem('invalidKey')
    if (!seen.includes(token)) seen.push(token)
    const id = BigInt(seen.indexOf(token))
    return { keyId: id, holder: id, readOnly: isReadOnlyKey(token) }
  }

  const endpointUrl = url.replace(/\/$/, '')
  const endpoint = new URL(endpointUrl, 'http://localhost').pathname
  const answer = ({ request }: { request: Request }) => {
    const caller = callerOf(request.headers.get('authorization'))
    // As in the service, before the procedures are looked for, and once for all calls of a batch.
    if (caller instanceof Problem) {
      const body = { error: transformer.serialize(caller.shape) }
      return Response.json(body, { status: caller.status, headers: [[...caller.headers]] as never })
    }
    return fetchRequestHandler({
      endpoint,
      req: request,
      router,
      maxBatchSize: MAX_BATCH,
      createContext({ req, info }): CallsOfRequest {
        if (caller.readOnly && info.type === 'mutation') throw problem('readOnlyKey')
        const idempotencyHeader = req.headers.get('idempotency-key') ?? undefined
        // Stores in memory do not wait.
        return { service: shared, caller, deadline: NEVER, idempotencyHeader }
      },
    })
  }
  return [http.get(`${endpointUrl}/*`, answer), http.post(`${endpointUrl}/*`, answer)]
}
