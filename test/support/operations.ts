/**
 * Every operation of the service, with calls for tests. It is a record over the procedures of the
 * router: a new one does not compile until it is listed here, and the tests of all operations then
 * include it.
 */
import type { TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { Answer, RestClient, RestInit } from './rest.ts'
import type { AppRouter } from './router.ts'

type Inputs = inferRouterInputs<AppRouter>
type Outputs = inferRouterOutputs<AppRouter>

/** The name of an operation: the name of its procedure, and its `operationId`. */
export type OperationName = keyof Inputs

/** The names of the 64-bit fields in the output of an operation. */
type Int64Fields<Output> = Output extends readonly (infer Item)[]
  ? Int64Fields<Item>
  : { [Field in keyof Output]: Output[Field] extends bigint ? Field : never }[keyof Output]

/** The same call on both surfaces. */
interface Call<Input> {
  rest: { method: string; path: string; body?: object }
  trpc: Input
}

interface Definition<Name extends OperationName> {
  /** The table that it reads or writes. */
  table: string
  /** Succeeds if pet 1 exists. */
  good: Call<Inputs[Name]>
  /** Returns 400. With a `body` the operation reads one. */
  invalid: Call<Inputs[Name]>
  /** Returns 404; undefined if the operation has no id. */
  missing?: Call<Inputs[Name]>
  /** Valid like `good`, with another body; undefined if the operation has no Idempotency-Key. */
  other?: Call<Inputs[Name]>
  /** The fields that are integers on REST and bigints on tRPC. */
  int64: Record<Int64Fields<Outputs[Name]>, true>
  call(client: TRPCClient<AppRouter>, input: Inputs[Name]): Promise<Outputs[Name]>
}

const rex = { name: 'Rex', categoryId: 3 }
const bella = { name: 'Bella', categoryId: 3 }
const pet = { id: true, categoryId: true } as const

const definitions: { [Name in OperationName]: Definition<Name> } = {
  listPets: {
    table: 'pets',
    good: { rest: { method: 'GET', path: '/pets' }, trpc: {} },
    invalid: { rest: { method: 'GET', path: '/pets?limit=0' }, trpc: { limit: 0 } },
    int64: pet,
    call: (client, input) => client.listPets.query(input),
  },
  createPet: {
    table: 'pets',
    good: { rest: { method: 'POST', path: '/pets', body: rex }, trpc: rex },
    invalid: {
      rest: { method: 'POST', path: '/pets', body: { ...rex, name: '' } },
      trpc: { ...rex, name: '' },
    },
    other: { rest: { method: 'POST', path: '/pets', body: bella }, trpc: bella },
    int64: pet,
    call: (client, input) => client.createPet.mutate(input),
  },
  getPet: {
    table: 'pets',
    good: { rest: { method: 'GET', path: '/pets/1' }, trpc: { petId: 1 } },
    invalid: { rest: { method: 'GET', path: '/pets/1.5' }, trpc: { petId: 1.5 } },
    missing: { rest: { method: 'GET', path: '/pets/404' }, trpc: { petId: 404 } },
    int64: pet,
    call: (client, input) => client.getPet.query(input),
  },
}

/** The kinds of calls of a definition. */
export type CallKind = 'good' | 'invalid' | 'missing' | 'other'

/** An operation, without the types of its input and output. */
export interface Operation {
  name: OperationName
  /** The method on REST. */
  method: string
  table: string
  /** Whether it writes, so that a read-only key is rejected. */
  changes: boolean
  hasBody: boolean
  /** Whether it has the id of a resource that may not exist. */
  namesOne: boolean
  takesIdempotencyKey: boolean
  /** Makes one of its calls; `init` extends or overrides the request. */
  rest(client: RestClient, kind?: CallKind, init?: RestInit): Promise<Answer>
  trpc(client: TRPCClient<AppRouter>, kind?: CallKind): Promise<unknown>
}

function operation<Name extends OperationName>(name: Name): Operation {
  const definition: Definition<Name> = definitions[name]
  const callOf = (kind: CallKind) => {
    const call = definition[kind]
    if (!call) throw new Error(`${name} has no call that is "${kind}"`)
    return call
  }
  return {
    name,
    method: definition.good.rest.method,
    table: definition.table,
    changes: definition.good.rest.method !== 'GET',
    hasBody: definition.invalid.rest.body !== undefined,
    namesOne: definition.missing !== undefined,
    takesIdempotencyKey: definition.other !== undefined,
    rest(client, kind = 'good', init = {}) {
      const { method, path, body } = callOf(kind).rest
      return client(method, path, { ...(body && { body }), ...init })
    },
    trpc: (client, kind = 'good') => definition.call(client, callOf(kind).trpc),
  }
}

/** All operations, in the order of the router. */
export const operations: readonly Operation[] = Object.keys(definitions).map(
  (name) => operation(name as OperationName), // Object.keys returns strings
)

/** The tables of all operations. */
export const tables = [...new Set(operations.map(({ table }) => table))]

/** The methods that CORS allows: those of all operations, and those that tRPC needs. */
export const corsMethods = [
  ...new Set(['GET', 'HEAD', 'POST', ...operations.map(({ method }) => method)]),
]

/** The expected `Allow` of a REST path that good calls have. */
export const allowAt = (path: string): string =>
  Object.values(definitions)
    .map(({ good }) => good.rest)
    .filter((call) => call.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')

/** Calls an operation of the client package, even with an input that its types do not allow. */
export const callWith = (
  client: TRPCClient<AppRouter>,
  name: OperationName,
  input: unknown,
): Promise<unknown> => definitions[name].call(client, input as never)

/** Whether a field in the output of this operation has 64 bits. */
export const isInt64 = (name: OperationName, field: string): boolean =>
  Object.hasOwn(definitions[name].int64, field)
