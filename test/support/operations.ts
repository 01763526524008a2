/** Every operation of the service, with calls for tests: a new one does not compile until it is here. */
import type { TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { Answer, RestClient, RestInit } from './rest.ts'
import type { AppRouter } from './router.ts'

type Inputs = inferRouterInputs<AppRouter>
type Outputs = inferRouterOutputs<AppRouter>

/** The name of a procedure, which is also the `operationId`. */
export type OperationName = keyof Inputs

/** The names of the 64-bit fields in the output of an operation. */
type Int64Fields<Output> = Output extends readonly (infer Item)[]
  ? Int64Fields<Item>
  : { [Field in keyof Output]: Output[Field] extends bigint ? Field : never }[keyof Output]

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
  /** The fields that are integers on REST and bigints on tRPC. */
  int64: Record<Int64Fields<Outputs[Name]>, true>
  call(client: TRPCClient<AppRouter>, input: Inputs[Name]): Promise<Outputs[Name]>
}

const rex = { name: 'Rex', categoryId: 3 }
const pet = { id: true, categoryId: true } as const

const definitions: { [Name in OperationName]: Definition<Name> } = {
  listPets: {
    table: 'pets',
    good: { method: 'GET', path: '/pets' },
    invalid: { method: 'GET', path: '/pets?limit=0' },
    int64: pet,
    call: (client, input) => client.listPets.query(input),
  },
  createPet: {
    table: 'pets',
    good: { method: 'POST', path: '/pets', body: rex },
    invalid: { method: 'POST', path: '/pets', body: { ...rex, name: '' } },
    other: { method: 'POST', path: '/pets', body: { ...rex, name: 'Bella' } },
    int64: pet,
    call: (client, input) => client.createPet.mutate(input),
  },
  getPet: {
    table: 'pets',
    good: { method: 'GET', path: '/pets/1' },
    invalid: { method: 'GET', path: '/pets/1.5' },
    missing: { method: 'GET', path: '/pets/404' },
    int64: pet,
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

/** Whether a field in the output of this operation has 64 bits. */
export const isInt64 = (name: OperationName, field: string): boolean =>
  Object.hasOwn(definitions[name].int64, field)
