/** The handlers of the stand-in: a router behind MSW, with what its calls share in memory. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { type HttpHandler, http } from 'msw'
import { Deadline } from '../../../db/deadline.ts'
import { Problem, problem } from '../../../src/errors/problem.ts'
import { type Caller, isReadOnlyKey, tokenOf } from '../../../src/keys/key.ts'
import type { CallsOfRequest, Operation, Shared } from '../../../src/procedure/call.ts'
import { operationsOf } from '../../../src/procedure/operations.ts'
import { routerOf, runOperation } from '../../../src/surface/trpc/functions.ts'
import { MAX_BATCH, transformer } from '../../../src/wire/encoding.ts'

const NEVER = new Deadline(Number.POSITIVE_INFINITY)

/** Returns handlers for MSW that serve this router at `url`; `apiKeys` are the valid keys, by default all. */
export function handlersOf(
  served: AnyTRPCRouter,
  shared: Shared,
  { url, apiKeys }: { url: string; apiKeys?: string[] | undefined },
): HttpHandler[] {
  // As in the service, each call of a batch is one of its own.
  const functionOf = (operation: Operation) => ({
    type: operation.type,
    call: async (request: CallsOfRequest, getInput: () => Promise<unknown>, batchIndex: number) =>
      runOperation(operation, request, await getInput(), batchIndex),
  })
  const functions = Object.fromEntries(
    operationsOf(served).map((one) => [one.name, functionOf(one)]),
  )
  const router = routerOf(served, functions)
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
        // Stores in memory do not wait, and there is no log.
        return { shared, caller, deadline: NEVER, idempotencyHeader, report() {} }
      },
    })
  }
  return [http.get(`${endpointUrl}/*`, answer), http.post(`${endpointUrl}/*`, answer)]
}
