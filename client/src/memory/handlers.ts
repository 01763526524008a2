/** The handlers of the stand-in: a router behind MSW, with what its calls share in memory. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { type HttpHandler, http } from 'msw'
import { Deadline } from '../../../db/deadline.ts'
import { Problem, problem, toProblem } from '../../../src/errors/problem.ts'
import { type Caller, isReadOnlyKey, tokenOf } from '../../../src/keys/key.ts'
import {
  ANYONE,
  type Authentication,
  authenticate,
  unauthorized,
  withoutCaller,
} from '../../../src/procedure/authentication.ts'
import {
  type CallsOfRequest,
  type CreateContext,
  type Shared,
  withContext,
} from '../../../src/procedure/call.ts'
import { operationsOf } from '../../../src/procedure/definitions.ts'
import { RequestHeaders } from '../../../src/procedure/headers.ts'
import type { Operation } from '../../../src/procedure/operation.ts'
import type { ContextFor, StoresOf } from '../../../src/procedure/procedure.ts'
import { routerOf } from '../../../src/surface/trpc/functions.ts'
import { runOperation } from '../../../src/surface/trpc/run.ts'
import { MAX_BATCH, transformer } from '../../../src/wire/encoding.ts'

const NEVER = new Deadline(Number.POSITIVE_INFINITY)

interface Options {
  url: string
  /** The valid API keys, by default all. */
  apiKeys?: string[] | undefined
  authentication?: Authentication
}

/** Returns handlers for MSW that serve this router. `createContext` adds to `ctx` what a browser can have. */
export function handlersOf<Router extends AnyTRPCRouter>(
  served: Router,
  shared: Shared<StoresOf<Router>>,
  options: Options & ContextFor<Router>,
): HttpHandler[] {
  const { url, apiKeys, authentication } = options
  const createContext: CreateContext = options.createContext ?? (() => ({}))
  // As in the service, each call of a batch is one of its own.
  const functionOf = (operation: Operation) => ({
    type: operation.type,
    async call(request: CallsOfRequest, getInput: () => Promise<unknown>, batchIndex: number) {
      const input = await getInput()
      return runOperation(operation, request, () => input, batchIndex)
    },
  })
  const operations = new Map(operationsOf(served).map((one) => [one.name, one]))
  const functions = Object.fromEntries(
    [...operations].map(([name, one]) => [name, functionOf(one)]),
  )
  const router = routerOf(served, functions)
  const seen: string[] = []

  const isPublic = (name: string) => operations.get(name)?.access.isPublic === true

  async function callerOf({ url: target, headers, signal }: Request): Promise<Caller> {
    const path = new URL(target).pathname.slice(endpoint.length + 1)
    if (decodeURIComponent(path).split(',').every(isPublic)) return ANYONE
    if (authentication) {
      const all = new RequestHeaders(Object.fromEntries(headers), true)
      const caller = await authenticate(authentication, { headers: all, signal })
      if (caller) return caller
      if (!authentication.besideApiKeys) throw unauthorized(authentication)
    }
    const token = tokenOf(headers.get('authorization') ?? undefined)
    if (!token || apiKeys?.includes(token) === false) throw withoutCaller(authentication, token)
    if (!seen.includes(token)) seen.push(token)
    const id = BigInt(seen.indexOf(token))
    return { keyId: id, name: 'stand-in', holder: id, readOnly: isReadOnlyKey(token) }
  }

  const endpointUrl = url.replace(/\/$/, '')
  const endpoint = new URL(endpointUrl, 'http://localhost').pathname
  const answer = async ({ request }: { request: Request }) => {
    const caller = await callerOf(request).catch(toProblem)
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
      createContext({ req, info }): Promise<CallsOfRequest> {
        if (caller.readOnly && info.type === 'mutation') {
          throw problem(caller.keyId === undefined ? 'readOnlyCaller' : 'readOnlyKey')
        }
        const headers = new RequestHeaders(Object.fromEntries(req.headers))
        const idempotencyHeader = headers.get('idempotency-key') ?? undefined
        // Stores in memory do not wait, and there is no log.
        const calls = { shared, caller, deadline: NEVER, headers, idempotencyHeader, report() {} }
        return withContext(calls, createContext)
      },
    })
  }
  return [http.get(`${endpointUrl}/*`, answer), http.post(`${endpointUrl}/*`, answer)]
}
