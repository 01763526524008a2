/** Every operation of the service, with calls for tests, read from the router. */
import type { TRPCClient } from '@trpc/client'
import type { AnyTRPCRouter, inferRouterInputs } from '@trpc/server'
import { TABLES } from '../../db/migrations.ts'
import { USER_TOKEN_HEADER } from '../../src/config/product.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import type { Operation as Served } from '../../src/procedure/call.ts'
import type { RestMeta } from '../../src/procedure/meta.ts'
import { operationsOf } from '../../src/procedure/operations.ts'
import type { Answer, RestClient, RestInit } from './rest.ts'
import type { AppRouter } from './router.ts'

/** The name of a procedure, which is also the `operationId`. */
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

const PARAMETER = /\{\w+\}/g
const placeOf = (path: string) => path.replaceAll(PARAMETER, '{}')

/** An operation that REST has. */
type Described = Served & { name: OperationName; rest: RestMeta }
const describedIn = (router: AnyTRPCRouter) =>
  operationsOf(router).filter(({ rest }) => rest) as Described[]
const described = describedIn(appRouter)

/** The headers of a good call. */
const headersFor = ({ access: { userToken } }: Described) =>
  userToken && { headers: { [USER_TOKEN_HEADER]: userToken.example } }

let serial = 0

/** Returns a body like the example, whose texts are unique where its schema lets them be. */
function uniqueBody({ input, rest }: Described): object {
  const body: Record<string, unknown> = { ...rest.exampleInput }
  const mark = ++serial
  for (const [field, value] of Object.entries(body)) {
    if (typeof value !== 'string') continue
    const isValid = (text: string) => {
      const issues = input.safeParse({ ...body, [field]: text }).error?.issues ?? []
      return !issues.some(({ path: [first] }) => first === field)
    }
    body[field] = [`${value} ${mark}`, `${mark}${value}`].find(isValid) ?? value
  }
  return body
}

/** The last resource of a template that ends in a parameter, such as `/pets/{petId}`. */
const LAST = /\/[^/]+\/\{\w+\}$/

/**
 * Returns the path of a resource that was created for this template by one of these operations; `client` creates it,
 * and what it belongs to.
 * Where no operation creates what is there, it is a relation of two resources, which are created for themselves.
 */
async function pathFor(
  described: Described[],
  template: string,
  client: RestClient,
): Promise<string> {
  const end = template.lastIndexOf('}') + 1
  if (end === 0) return template
  const place = placeOf(template.slice(0, end))
  const creation = described.find(({ rest }) => rest.creates && placeOf(rest.creates) === place)
  if (!creation) {
    const { 0: last = '', index = 0 } = LAST.exec(template.slice(0, end)) ?? {}
    if (index === 0) throw new Error(`No operation creates ${template.slice(0, end)}`)
    const parent = await pathFor(described, template.slice(0, index), client)
    return parent + (await pathFor(described, last, client)) + template.slice(end)
  }
  const path = await pathFor(described, creation.rest.path, client)
  const body = uniqueBody(creation)
  const { headers, status, text } = await client('POST', path, {
    body,
    ...headersFor(creation),
  })
  if (status !== 201) throw new Error(`The example of ${creation.name} is refused: ${text}`)
  const location = new URL(headers.get('location') ?? '').pathname.replace(/^.*\/v1(?=\/)/, '')
  return location + template.slice(end)
}

/** An operation, without the types of its input and output. */
export type Operation = (typeof operations)[number]

/** Returns the body of a call; a resource that a field names, such as `petId`, is created. */
async function bodyFor(
  described: Described[],
  operation: Described,
  client: RestClient,
): Promise<object> {
  const body: Record<string, unknown> = { ...uniqueBody(operation) }
  for (const field of Object.keys(body)) {
    const template = described
      .map(({ rest }) => rest.path)
      .find(
        (path) =>
          path.endsWith(`/{${field}}`) &&
          described.some(({ rest }) => rest.creates && placeOf(rest.creates) === placeOf(path)),
      )
    if (template)
      body[field] = Number((await pathFor(described, template, client)).split('/').at(-1))
  }
  return body
}

/** All operations of a router, in its order. */
export const operationsIn = (router: AnyTRPCRouter) => describedIn(router).map(testedOf)

/** All operations of the service. */
export const operations = operationsIn(appRouter)

function testedOf(operation: Described, _: number, described: Described[]) {
  const { name, type, rest, isPaged } = operation
  const { method, path, exampleInput, notFound, takesKey = false, conflict } = rest
  const hasBody = exampleInput !== undefined
  return {
    name,
    /** Whether it writes, so that a read-only key is rejected. */
    changes: type === 'mutation',
    hasBody,
    /** Whether it has the id of a resource that may not exist. */
    namesOne: notFound !== undefined,
    takesIdempotencyKey: takesKey,
    /** Whether it refuses what a resource's state or a unique value excludes. */
    hasConflict: conflict !== undefined,
    /** Whether anyone may call it. */
    isPublic: operation.access.isPublic === true,
    /** What its middlewares throw. */
    thrown: operation.access.errors ?? [],
    /** Returns one of its calls; `client` creates what it needs. */
    async prepare(client: RestClient, kind: Kind = 'good'): Promise<Call> {
      const body = hasBody && {
        body: kind === 'invalid' ? [] : await bodyFor(described, operation, client),
      }
      const headers = headersFor(operation)
      if (kind === 'good' || kind === 'other' || (kind === 'invalid' && hasBody)) {
        return { method, path: await pathFor(described, path, client), ...body, ...headers }
      }
      const value = kind === 'missing' ? '404' : '1.5'
      const query = kind === 'invalid' && isPaged ? '?limit=0' : ''
      return { method, path: path.replaceAll(PARAMETER, value) + query, ...body, ...headers }
    },
  }
}

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
  ...new Set(['GET', 'HEAD', 'POST', ...described.map(({ rest }) => rest.method)]),
]

/** The expected `Allow` of a REST path. */
export const allowAt = (path: string): string =>
  described
    .filter(({ rest }) => new RegExp(`^${rest.path.replaceAll(PARAMETER, '[^/]+')}$`).test(path))
    .flatMap(({ rest }) => (rest.method === 'GET' ? ['GET', 'HEAD'] : [rest.method]))
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
