/** Every operation of the service, with calls for tests: a new one does not compile until it is here. */
import type { TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { Answer, RestClient, RestInit } from './rest.ts'
import type { AppRouter } from './router.ts'

type Inputs = inferRouterInputs<AppRouter>
type Outputs = inferRouterOutputs<AppRouter>

/** The name of a procedure, which is also the `operationId`. */
export type OperationName = keyof Inputs

interface Call {
  method: string
  path: string
  body?: object
}

interface Definition<Name extends OperationName> {
  /** The table that it reads or writes. */
  table: string
  /** Succeeds if pet 1 exists. */
  good: Call
  /** Returns 400. With a `body` the operation reads one. */
  invalid: Call
  /** Returns 404; undefined if the operation has no id. */
  missing?: Call
  /** Valid like `good`, with another body; undefined if the operation has no Idempotency-Key. */
  other?: Call
  call(client: TRPCClient<AppRouter>, input: Inputs[Name]): Promise<Outputs[Name]>
}

const rex = { name: 'Rex', categoryId: 3 }

const definitions: { [Name in OperationName]: Definition<Name> } = {
  listPets: {
    table: 'pets',
    good: { method: 'GET', path: '/pets' },
    invalid: { method: 'GET', path: '/pets?limit=0' },
    call: (client, input) => client.listPets.query(input),
  },
  createPet: {
    table: 'pets',
    good: { method: 'POST', path: '/pets', body: rex },
    invalid: { method: 'POST', path: '/pets', body: { ...rex, name: '' } },
    other: { method: 'POST', path: '/pets', body: { ...rex, name: 'Bella' } },
    call: (client, input) => client.createPet.mutate(input),
  },
  getPet: {
    table: 'pets',
    good: { method: 'GET', path: '/pets/1' },
    invalid: { method: 'GET', path: '/pets/1.5' },
    missing: { method: 'GET', path: '/pets/404' },
    call: (client, input) => client.getPet.query(input),
  },
}

/** An operation, without the types of its input and output. */
export type Operation = (typeof operations)[number]

/** All operations, in the order of the router. */
export const operations = Object.entries(definitions).map(([name, definition]) => ({
  name: name as OperationName, // Object.entries returns strings
  /** Whether it writes, so that a read-only key is rejected. */
  changes: definition.good.method !== 'GET',
  hasBody: definition.invalid.body !== undefined,
  /** Whether it has the id of a resource that may not exist. */
  namesOne: definition.missing !== undefined,
  takesIdempotencyKey: definition.other !== undefined,
  /** Makes one of its calls; `init` extends or overrides the request. */
  rest(
    client: RestClient,
    kind: 'good' | 'invalid' | 'missing' | 'other' = 'good',
    init: RestInit = {},
  ): Promise<Answer> {
    const call = definition[kind]
    if (!call) throw new Error(`${name} has no call that is "${kind}"`)
    const { method, path, body } = call
    return client(method, path, { ...(body && { body }), ...init })
  },
}))

const all = Object.values(definitions)

/** The tables of all operations. */
export const tables = [...new Set(all.map(({ table }) => table))]

/** The methods that CORS allows: those of all operations, and those that tRPC needs. */
export const corsMethods = [
  ...new Set(['GET', 'HEAD', 'POST', ...all.map(({ good }) => good.method)]),
]

/** The expected `Allow` of a REST path that good calls have. */
export const allowAt = (path: string): string =>
  all
    .filter(({ good }) => good.path === path)
    .flatMap(({ good }) => (good.method === 'GET' ? ['GET', 'HEAD'] : [good.method]))
    .join(', ')

/** Calls an operation of the client package, even with an input that its types do not allow. */
export const callWith = (
  client: TRPCClient<AppRouter>,
  name: OperationName,
  input: unknown,
): Promise<unknown> => definitions[name].call(client, input as never)
