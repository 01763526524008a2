/** Every operation of the service, with calls for tests, read from the router. */
import type { TRPCClient } from '@trpc/client'
import type { AnyTRPCRouter, inferRouterInputs } from '@trpc/server'
import { TABLES } from '../../db/migrations.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import { operationsOf } from '../../src/procedure/definitions.ts'
import { type Route, routesOf } from '../../src/surface/rest/routes.ts'
import { type Described, headersFor, NO_ID, newCall, PARAMETER } from './needs.ts'
import type { Answer, RestClient, RestInit } from './rest.ts'
import type { AppRouter } from './router.ts'

/** The name of a procedure. */
export type OperationName = keyof inferRouterInputs<AppRouter>

/** A request of REST. */
export interface Call {
  method: string
  path: string
  body?: object
  headers?: RestInit['headers']
}

/** What a call is: it succeeds, as `good` and `other` do on rows that each call has for itself; 400; or 404. */
export type Kind = 'good' | 'other' | 'invalid' | 'missing'

/** Texts of which each type that a URL can have rejects one. */
const INVALID = ['x', '1.5', ' ']

/** Returns the parameter of a URL that is made invalid, and its text; undefined where all texts are valid. */
function invalidParameter({ operation, pathParameters, queryParameters }: Route) {
  for (const { name, readText } of [...queryParameters, ...pathParameters]) {
    const text = INVALID.find((text) => {
      const { error } = operation.input.safeParse({ [name]: readText(text) })
      return error?.issues.some(({ path: [field] }) => field === name)
    })
    if (text !== undefined) return { name, text }
  }
  return undefined
}

/** An operation, without the types of its input and output. */
export type Operation = ReturnType<typeof operationsIn>[number]

/** Returns all operations of a router that REST has, in its order. */
export function operationsIn(router: AnyTRPCRouter) {
  const described = operationsOf(router).filter(({ rest }) => rest) as Described[]
  return routesOf(described, 'https://petstore.example/v1').map((route) => {
    const { operation, operationId, method, path, exampleInput } = route
    const { notFound, takesKey = false, conflict } = route
    const { name, type, isPaged } = operation as Described
    const hasBody = exampleInput !== undefined
    const wrong = hasBody ? undefined : invalidParameter(route)
    return {
      name,
      /** Its name in the document. */
      operationId,
      method,
      template: path,
      /** Whether it writes, so that a read-only key is rejected. */
      changes: type === 'mutation',
      hasBody,
      /** Whether it has the id of a resource that may not exist. */
      namesOne: notFound !== undefined,
      takesIdempotencyKey: takesKey,
      /** Whether it refuses what a resource's state or a unique value excludes. */
      hasConflict: conflict !== undefined,
      /** Whether it has a table for sure: without pages, a key, 404 and 409 it may have none. */
      hasTable: isPaged || takesKey || notFound !== undefined || conflict !== undefined,
      /** Whether anyone may call it. */
      isPublic: operation.access.isPublic === true,
      /** What its middlewares throw. */
      thrown: operation.access.errors ?? [],
      /** Whether a body or a URL can be invalid. */
      canBeInvalid: hasBody || wrong !== undefined,
      /** Returns one of its calls; `client` creates what it needs. */
      async prepare(client: RestClient, kind: Kind = 'good'): Promise<Call> {
        const makers = { described, client }
        const headers = headersFor(operation)
        const isMissing = kind === 'missing' && !path.includes('{')
        const nowhere = path.replaceAll(PARAMETER, String(NO_ID))
        if (kind === 'invalid' && wrong) {
          const { name, text } = wrong
          const inPath = path.replace(`{${name}}`, encodeURIComponent(text))
          const query = inPath === path ? `?${name}=${encodeURIComponent(text)}` : ''
          return { method, path: inPath.replaceAll(PARAMETER, String(NO_ID)) + query, ...headers }
        }
        const good = await newCall(makers, operation as Described, { isMissing })
        const call = { method, ...good, ...headers }
        if (kind === 'invalid') return { ...call, body: [] }
        return kind === 'missing' && !isMissing ? { ...call, path: nowhere } : call
      },
    }
  })
}

/** All operations of the service. */
export const operations = operationsIn(appRouter)

/** Sends a call; `init` extends or overrides the request. */
export const send = (
  client: RestClient,
  { method, path, body, headers }: Call,
  init: RestInit = {},
): Promise<Answer> =>
  client(method, path, {
    ...(body && { body }),
    ...init,
    ...(headers && { headers: { ...headers, ...init.headers } }),
  })

/** The tables of all resources. */
export const tables = TABLES.filter((name) => !['api_keys', 'idempotency_keys'].includes(name))

/** The methods that CORS allows: those of all operations, and those that tRPC needs. */
export const corsMethods = [
  ...new Set(['GET', 'HEAD', 'POST', ...operations.map(({ method }) => method)]),
]

/** The expected `Allow` of a REST path. */
export const allowAt = (path: string): string =>
  operations
    .filter(({ template }) => new RegExp(`^${template.replaceAll(PARAMETER, '[^/]+')}$`).test(path))
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')

/** Calls an operation of the client package, even with an input that its types do not allow. */
export function callWith(
  client: TRPCClient<AppRouter>,
  name: OperationName,
  input: unknown,
): Promise<unknown> {
  type Caller = { query(input: unknown): Promise<unknown>; mutate: Caller['query'] }
  const isQuery = operations.some((one) => one.name === name && !one.changes)
  const within = (routers: object, key: string) => routers[key as keyof typeof routers] as object
  const procedure = name.split('.').reduce(within, client) as Caller
  return isQuery ? procedure.query(input) : procedure.mutate(input)
}
