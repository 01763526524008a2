/**
 * What tRPC's pages (Routers, Merging routers, Procedures, Validators) and the tests of trpc-to-openapi's adapters
 * show: each scenario by the service's own parts, with their answer, or with another one and its reason.
 */
import { createTRPCClient, httpBatchLink, TRPCClientError } from '@trpc/client'
import { type AnyTRPCRouter, TRPCError, type TRPCRouterRecord } from '@trpc/server'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { operationsOf } from '../../src/procedure/definitions.ts'
import { proceduresWith, router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { routesOf } from '../../src/surface/rest/routes.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import type { KeyedInit } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'

/** An answer of REST: the status, and the body or the code of the Error. Of tRPC: 200 and the output. */
type Answer = [status: number, body?: unknown]

interface Scenario {
  /** Undefined for a path that no procedure has. */
  procedures?: TRPCRouterRecord
  /** A request of REST, or a call of tRPC: the path of the procedure, and its input. */
  ask:
    | [path: string, init?: KeyedInit]
    | { query: string; input?: unknown }
    | { mutate: string; input?: unknown }
  /** Their answer. */
  theirs: Answer
  /** Ours, where it is another one on purpose, and why. */
  ours?: Answer
  because?: string
}

const on = procedure
const Payload = z.object({ payload: z.string() }).meta({ id: 'Payload' })
const Name = z.object({ name: z.string() })
const Greeting = z.object({ greeting: z.string() }).meta({ id: 'Greeting' })
const hello = { greeting: 'Hello Lily!' }
const example = { payload: 'Mario' }
const json = (method: string, body: unknown, type = 'application/json'): KeyedInit => ({
  method,
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
const echoAt = (path: `/${string}`) =>
  on
    .meta(described('POST', path, { example, exampleInput: example }))
    .input(Payload)
    .output(Payload)
    .mutation(({ ctx, input }) => write(ctx, async () => input))
const readAt = (path: `/${string}`) =>
  on
    .meta(described('GET', path, { example }))
    .input(Payload)
    .output(Payload)
    .query(({ input }) => input)
const greetAt = (path: `/${string}`) =>
  on
    .meta(described('GET', path, { example: hello }))
    .input(Name)
    .output(Greeting)
    .query(({ input }) => ({ greeting: `Hello ${input.name}!` }))
const result = (value: number) => ({ result: value })
const Result = z.object({ result: z.number() }).meta({ id: 'Result' })
const plusOneAt = (path: `/${string}`, number: z.ZodType<number> = z.number()) =>
  on
    .meta(described('GET', path, { example: result(1) }))
    .input(z.object({ number }))
    .output(Result)
    .query(({ input }) => result((input as { number: number }).number + 1))
const throwing = (path: `/${string}`, error: Error) =>
  on
    .meta(described('POST', path, {}))
    .input(z.void())
    .output(z.void())
    .mutation(() => {
      throw error
    })
const pong = { example: 'pong' }
const Pong = z.literal('pong')

/** The scenarios of trpc-to-openapi 3.2, `test/adapters/standalone.test.ts`, by their names there. */
const ofAdapters: Record<string, Scenario> = {
  'with not found path': { ask: ['/pingg', { method: 'POST' }], theirs: [404, 'NOT_FOUND'] },
  'with not found method': {
    procedures: { lost: echoAt('/lost') },
    ask: ['/lost', { method: 'PATCH' }],
    theirs: [404, 'NOT_FOUND'],
    ours: [405, 'METHOD_NOT_SUPPORTED'],
    because: 'RFC 9110, section 15.5.6: the path exists, and Allow says what it takes',
  },
  'with missing content-type header': {
    procedures: { text: echoAt('/text') },
    ask: ['/text', json('POST', '"Lily"')],
    theirs: [400, 'BAD_REQUEST'],
  },
  'with invalid content-type': {
    procedures: { typed: echoAt('/typed') },
    ask: ['/typed', json('POST', 'non-json-string', 'text/plain')],
    theirs: [415, 'UNSUPPORTED_MEDIA_TYPE'],
  },
  'with missing input': {
    procedures: { missing: readAt('/missing') },
    ask: ['/missing'],
    theirs: [400, 'BAD_REQUEST'],
  },
  'with wrong input type': {
    procedures: { wrong: echoAt('/wrong') },
    ask: ['/wrong', json('POST', { payload: 123 })],
    theirs: [400, 'BAD_REQUEST'],
  },
  'with bad output (of a mutation)': {
    procedures: {
      bad: on
        .meta(described('POST', '/bad', { example, exampleInput: example }))
        .input(Payload)
        .output(Payload)
        .mutation(({ ctx }) => write(ctx, async () => 'fail' as never)),
    },
    ask: ['/bad', json('POST', { payload: '@Mario' })],
    theirs: [500, 'INTERNAL_SERVER_ERROR'],
  },
  'with bad output (of a query)': {
    procedures: {
      badToo: on
        .meta(described('GET', '/bad-output', { example: '' }))
        .input(z.void())
        .output(z.string())
        .query(() => ({}) as never),
    },
    ask: ['/bad-output'],
    theirs: [500, 'INTERNAL_SERVER_ERROR'],
  },
  'with valid routes (GET)': {
    procedures: { greet: greetAt('/say-hello') },
    ask: ['/say-hello?name=Lily'],
    theirs: [200, hello],
  },
  'with valid routes (POST)': {
    procedures: { echo: echoAt('/echo') },
    ask: ['/echo', json('POST', { payload: 'Lily' })],
    theirs: [200, { payload: 'Lily' }],
  },
  'with void input (GET)': {
    procedures: {
      ping: on
        .meta(described('GET', '/ping', pong))
        .input(z.void())
        .output(Pong)
        .query(() => 'pong'),
    },
    ask: ['/ping', { headers: { 'content-type': 'application/json' } }],
    theirs: [200, 'pong'],
  },
  'with void input (POST)': {
    procedures: {
      pingMutation: on
        .meta(described('POST', '/ping', pong))
        .input(z.void())
        .output(Pong)
        .mutation(({ ctx }) => write(ctx, async () => 'pong' as const)),
    },
    ask: ['/ping', { method: 'POST', headers: { 'content-type': 'application/json' } }],
    theirs: [200, 'pong'],
  },
  'with void output': {
    procedures: {
      quiet: on
        .meta(described('GET', '/quiet', {}))
        .input(z.object({ ping: z.string() }))
        .output(z.void())
        .query(() => undefined),
    },
    ask: ['/quiet?ping=ping'],
    theirs: [200],
    ours: [204],
    because: 'RFC 9110, section 15.3.5: a success without content is 204',
  },
  'with createContext': {
    procedures: {
      context: on
        .meta(described('GET', '/context', { example: true }))
        .output(z.boolean())
        .query(({ ctx }) => ctx.caller.readOnly),
    },
    ask: ['/context'],
    theirs: [200, false],
  },
  'with responseMeta': {
    procedures: { told: readAt('/told') },
    ask: ['/told?payload=Mario'],
    theirs: [202, example],
    ours: [200, example],
    because: 'statuses and headers are those of the description, so that the document knows them',
  },
  'with skipped transformer': {
    procedures: { plain: readAt('/plain') },
    ask: ['/plain?payload=Mario'],
    theirs: [200, example],
  },
  'with warmup request': {
    ask: ['/any-endpoint', { method: 'HEAD' }],
    theirs: [204],
    ours: [404],
    because: 'RFC 9110, section 9.3.2: HEAD is answered as GET; /healthz is for warm-ups',
  },
  'with invalid json': {
    procedures: { broken: echoAt('/broken') },
    ask: ['/broken', json('POST', '[object Object]')],
    theirs: [500, 'INTERNAL_SERVER_ERROR'],
    ours: [400, 'PARSE_ERROR'],
    because: 'the fault is the client’s, and the service logs no error for it',
  },
  'with maxBodySize': {
    procedures: { large: echoAt('/large') },
    ask: ['/large', json('POST', { payload: 'x'.repeat(2 ** 16) })],
    theirs: [413, 'PAYLOAD_TOO_LARGE'],
  },
  'with multiple input query string params': {
    procedures: { twice: greetAt('/twice') },
    ask: ['/twice?name=Lily&name=Mario'],
    theirs: [400, 'BAD_REQUEST'],
  },
  'with array input query string params': {
    procedures: {
      several: on
        .meta(described('GET', '/several', { example: hello }))
        .input(z.object({ name: z.array(z.string()) }))
        .output(Greeting)
        .query(({ input }) => ({ greeting: `Hello ${input.name.join(', ')}!` })),
    },
    ask: ['/several?name=Lily&name=Mario'],
    theirs: [200, { greeting: 'Hello Lily, Mario!' }],
  },
  'with case insensitivity': {
    procedures: { lower: greetAt('/lower') },
    ask: ['/LOWER?name=Lily'],
    theirs: [200, hello],
    ours: [404, 'NOT_FOUND'],
    because:
      'RFC 3986, section 6.2.2.1: a path distinguishes case, and caches and logs have one name each',
  },
  'with path parameters (GET)': {
    procedures: { inPath: greetAt('/in-path/{name}') },
    ask: ['/in-path/Lily'],
    theirs: [200, hello],
  },
  'with path parameters (POST, which the body repeats)': {
    procedures: {
      inPathToo: on
        .meta(described('POST', '/in-path/{name}', { example: hello }))
        .input(Name)
        .output(Greeting)
        .mutation(({ ctx, input: { name } }) =>
          write(ctx, async () => ({ greeting: `Hello ${name}!` })),
        ),
    },
    ask: ['/in-path/Lily', json('POST', { name: 'Mario' })],
    theirs: [200, hello],
  },
  'with path parameters (two, which the query repeats)': {
    procedures: {
      two: on
        .meta(described('GET', '/say/{first}/{last}', { example: hello }))
        .input(z.object({ first: z.string(), last: z.string(), greeting: z.string() }))
        .output(Greeting)
        .query(({ input: { greeting, first, last } }) => ({
          greeting: `${greeting} ${first} ${last}!`,
        })),
    },
    ask: ['/say/Lily/Rose?greeting=Hello&first=Mario'],
    theirs: [200, { greeting: 'Hello Lily Rose!' }],
  },
  'with void and trpc client': {
    procedures: { void: on.input(z.void()).query(({ input }) => ({ payload: input })) },
    ask: { query: 'void' },
    theirs: [200, { payload: undefined }],
  },
  'with void and trpc client (an input that is not void)': {
    procedures: { voidToo: on.input(z.void()).query(({ input }) => ({ payload: input })) },
    ask: { query: 'voidToo', input: {} },
    theirs: [400, 'BAD_REQUEST'],
  },
  'with void and trpc client (a mutation)': {
    procedures: {
      voidMutation: on.input(z.void()).mutation(({ ctx }) => write(ctx, async () => ({}))),
    },
    ask: { mutate: 'voidMutation' },
    theirs: [200, {}],
  },
  'with DELETE mutation': {
    procedures: {
      echoDelete: on
        .meta(described('DELETE', '/echo-delete', { example }))
        .input(Payload)
        .output(Payload)
        .mutation(({ ctx, input }) => write(ctx, async () => input)),
    },
    ask: ['/echo-delete?payload=Mario', { method: 'DELETE' }],
    theirs: [200, example],
  },
  'with POST query': {
    procedures: {
      echoPost: on
        .meta(described('POST', '/echo-post', { example, exampleInput: example }))
        .input(Payload)
        .output(Payload)
        .query(({ input }) => input),
    },
    ask: ['/echo-post', json('POST', example)],
    theirs: [200, example],
  },
  'with thrown error': {
    procedures: { fails: throwing('/fails', new Error('Custom error message')) },
    ask: ['/fails', { method: 'POST' }],
    theirs: [500, { message: 'Custom error message' }],
    ours: [500, { message: 'Internal server error' }],
    because: 'the text of an unknown error, such as of a database, is for the log alone',
  },
  'with thrown error (TRPCError)': {
    procedures: {
      refuses: throwing('/refuses', new TRPCError({ code: 'CONFLICT', message: 'It is taken' })),
    },
    ask: ['/refuses', { method: 'POST' }],
    theirs: [409, { message: 'It is taken', code: 'CONFLICT' }],
  },
  'with error formatter': {
    procedures: { formatted: throwing('/formatted', new Error('Custom error message')) },
    ask: ['/formatted', { method: 'POST' }],
    theirs: [500, { message: 'Custom formatted error message' }],
    ours: [500, { message: 'Internal server error' }],
    because: 'all errors have the form of the document; a middleware may throw another error',
  },
  'with nested routers': {
    procedures: { deep: { router: { procedure: readAt('/router/router/procedure') } } },
    ask: ['/router/router/procedure?payload=three'],
    theirs: [200, { payload: 'three' }],
  },
  'with multiple inputs': {
    procedures: {
      full: on
        .meta(described('GET', '/multi-input', { example: { fullName: '' } }))
        .input(z.object({ firstName: z.string() }))
        .input(z.object({ lastName: z.string() }))
        .output(z.object({ fullName: z.string() }))
        .query(({ input }) => ({ fullName: `${input.firstName} ${input.lastName}` })),
    },
    ask: ['/multi-input?firstName=Lily&lastName=Rose'],
    theirs: [200, { fullName: 'Lily Rose' }],
  },
  'with preprocess': {
    procedures: {
      lists: on
        .meta(described('GET', '/preprocess', { example: { result: '' } }))
        .input(z.object({ value: z.preprocess((value) => [value, value], z.array(z.string())) }))
        .output(z.object({ result: z.string() }))
        .query(({ input }) => ({ result: input.value.join('XXX') })),
    },
    ask: ['/preprocess?value=lol'],
    theirs: [200, { result: 'lolXXXlol' }],
    ours: [400, 'BAD_REQUEST'],
    because: 'the document shows a list, so the function gets one: the same on REST and on tRPC',
  },
  'with non-coerce preprocess': {
    procedures: {
      parsed: plusOneAt(
        '/parsed',
        z.preprocess(
          (value) => (typeof value === 'string' ? Number(value) : value),
          z.number(),
        ) as never,
      ),
    },
    ask: ['/parsed?number=9'],
    theirs: [200, result(10)],
  },
  'with coerce (a query)': {
    procedures: { plusOne: plusOneAt('/plus-one') },
    ask: ['/plus-one?number=9'],
    theirs: [200, result(10)],
  },
  'with coerce (a path)': {
    procedures: { plusOneOf: plusOneAt('/plus-one/{number}') },
    ask: ['/plus-one/9'],
    theirs: [200, result(10)],
  },
  'with coerce (a date in a body)': {
    procedures: {
      later: on
        .meta(
          described('POST', '/later', { example: result(1), exampleInput: { date: new Date() } }),
        )
        .input(z.object({ date: z.date() }).meta({ id: 'Later', override: { type: 'object' } }))
        .output(Result)
        .mutation(({ ctx, input }) => write(ctx, async () => result(input.date.getTime() + 1))),
    },
    ask: ['/later', json('POST', { date: '2026-01-02T03:04:05.006Z' })],
    theirs: [200, result(1_767_323_045_007)],
  },
  'with coerce (no digits)': {
    procedures: { strict: plusOneAt('/strict') },
    ask: ['/strict?number='],
    theirs: [200, result(1)],
    ours: [400, 'BAD_REQUEST'],
    because: 'an empty text is no number, nor is "0x10" or " 7": a mistake is not answered as a 0',
  },
  'with x-www-form-urlencoded': {
    procedures: { form: echoAt('/form') },
    ask: ['/form', json('POST', 'payload=Hello', 'application/x-www-form-urlencoded')],
    theirs: [415, 'UNSUPPORTED_MEDIA_TYPE'],
  },
}

const t = proceduresWith<object>()
const users = t.router({ list: t.procedure.query(() => ['KATT']) })
const posts = proceduresWith<object>().router({
  post: {
    create: t.procedure.input(Payload).mutation(({ ctx, input }) => write(ctx, async () => input)),
  },
})
const member = t.procedure.input(z.object({ organizationId: z.string() }))

/** Inputs of which each has a check: neither this name nor this address. */
const stacked = (noName: string, noEmail: string) =>
  on
    .input(z.object({ name: z.string() }).refine(({ name }) => name !== noName))
    .input(z.object({ email: z.string() }).refine(({ email }) => email !== noEmail))
    .query(({ input }) => input)

/** The examples of tRPC's pages, by the pages' names. */
const ofPages: Record<string, Scenario> = {
  'Routers: a query without an input': {
    procedures: { greeting: on.query(() => 'hello tRPC v11!') },
    ask: { query: 'greeting' },
    theirs: [200, 'hello tRPC v11!'],
  },
  'Routers: an inline sub-router': {
    procedures: { nested1: { nested2: { proc: on.query(() => 'inside') } } },
    ask: { query: 'nested1.nested2.proc' },
    theirs: [200, 'inside'],
  },
  'Merging routers: child routers': {
    procedures: { user: users as unknown as TRPCRouterRecord },
    ask: { query: 'user.list' },
    theirs: [200, ['KATT']],
  },
  'Merging routers: mergeRouters': {
    procedures: t.mergeRouters(users, posts)._def.record,
    ask: { mutate: 'post.create', input: example },
    theirs: [200, example],
  },
  'Procedures: a mutation': {
    procedures: {
      goodbye: on.mutation(({ ctx }) => write(ctx, async () => ({ message: 'goodbye!' }))),
    },
    ask: { mutate: 'goodbye' },
    theirs: [200, { message: 'goodbye!' }],
  },
  'Procedures: a base procedure with an input': {
    procedures: {
      addMember: member
        .use(({ input, next }) => next({ ctx: { organization: input.organizationId } }))
        .input(z.object({ email: z.string() }))
        .mutation(({ ctx, input }) => write(ctx, async () => [ctx.organization, input])),
    },
    ask: { mutate: 'addMember', input: { organizationId: 'zoo', email: 'a@b.example' } },
    theirs: [200, ['zoo', { organizationId: 'zoo', email: 'a@b.example' }]],
  },
  'Procedures: a part of a base procedure, by concat': {
    procedures: { joined: on.concat(member).query(({ input }) => input) },
    ask: { query: 'joined', input: { organizationId: 'zoo' } },
    theirs: [200, { organizationId: 'zoo' }],
  },
  'Validators: stacked inputs, with a check of the first': {
    procedures: { register: stacked('root', '') },
    ask: { query: 'register', input: { name: 'root', email: 'a@b.example' } },
    theirs: [400, 'BAD_REQUEST'],
  },
  'Validators: stacked inputs, with a check of the second': {
    procedures: { registerToo: stacked('', 'a@b.example') },
    ask: { query: 'registerToo', input: { name: 'root', email: 'a@b.example' } },
    theirs: [400, 'BAD_REQUEST'],
  },
  'Validators: an output that its schema rejects': {
    procedures: { invalid: on.output(Greeting).query(() => ({ greeting: 7 }) as never) },
    ask: { query: 'invalid' },
    theirs: [500, 'INTERNAL_SERVER_ERROR'],
  },
}

const scenarios = { ...ofAdapters, ...ofPages }
const served = router(
  Object.assign({}, ...Object.values(scenarios).map(({ procedures }) => procedures)),
)
const service = await serviceForFile({}, { resources: resourcesOf(served) })

async function answerOf(ask: Scenario['ask'], expected: Answer): Promise<Answer> {
  if (!Array.isArray(ask)) return await outcomeOf(ask)
  const [path, init] = ask
  const response = await service.fetch(`/v1${path}`, init)
  const text = await response.text()
  const body = text === '' ? undefined : JSON.parse(text)
  const isCode = response.status >= 400 && typeof expected[1] === 'string'
  return [response.status, isCode ? body?.code : body]
}

async function outcomeOf(ask: Exclude<Scenario['ask'], unknown[]>): Promise<Answer> {
  const headers = { authorization: `Bearer ${service.key}` }
  const url = `${service.origin}/trpc`
  const links = [httpBatchLink({ url, transformer, headers } as never)]
  const client = createTRPCClient<AnyTRPCRouter>({ links })
  const [kind, name] = 'query' in ask ? ['query', ask.query] : ['mutate', ask.mutate]
  type Caller = Record<string, (input: unknown) => Promise<unknown>>
  const within = (routers: object, key: string) => routers[key as never] as object
  const procedure = name.split('.').reduce(within, client) as Caller
  try {
    return [200, await procedure[kind]?.(ask.input)]
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error
    return [error.data.httpStatus, error.data.code]
  }
}

describe.each([
  ['trpc-to-openapi', ofAdapters],
  ["tRPC's pages", ofPages],
])('%s', (_, scenarios) => {
  test.each(Object.entries(scenarios))('%s', async (_, { ask, theirs, ours, because }) => {
    const expected = ours ?? theirs
    const answer = await answerOf(ask, expected)
    expect(answer[0]).toBe(expected[0])
    if (typeof expected[1] === 'object' && answer[0] >= 400)
      expect(answer[1]).toMatchObject(expected[1] as object)
    else if (expected.length > 1) expect(answer[1]).toEqual(expected[1])
    expect(ours === undefined || because !== undefined).toBe(true)
  })
})

test('with invalid router: no start', () => {
  const meta = described('GET', '/invalid-route', {})
  const invalidRoute = procedure
    .meta(meta)
    .input(z.void())
    .query(({ input }) => input)
  expect(() => routesOf(operationsOf(router({ invalidRoute })), '')).toThrow('needs .output(…)')
})
