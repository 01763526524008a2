/** The service does not start with a description that contradicts its procedure. The error names the cause. */
import type { IncomingMessage } from 'node:http'
import { type AnyTRPCRouter, lazy } from '@trpc/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Call } from '../../../src/procedure/call.ts'
import { operationsOf } from '../../../src/procedure/definitions.ts'
import { paged } from '../../../src/procedure/paging.ts'
import { router } from '../../../src/procedure/procedure.ts'
import { write, writeIdempotent } from '../../../src/procedure/write.ts'
import { routesOf } from '../../../src/surface/rest/routes.ts'
import { restSurface } from '../../../src/surface/rest/surface.ts'
import { described, procedure } from '../../support/procedures.ts'

const Toy = z.object({ label: z.string() }).meta({ id: 'Toy' })
const example = { label: 'Ball' }
const give = async () => example
const reading = procedure.meta(described('GET', '/toys', { example }))
const listing = procedure.meta(described('GET', '/toys', { isPaged: true, example: [example] }))
const posting = procedure.meta(described('POST', '/toys', { example, exampleInput: example }))
const creating = procedure
  .meta(
    described('POST', '/toys', {
      creates: '/toys/{id}',
      takesKey: true,
      example,
      exampleInput: example,
    }),
  )
  .input(Toy)
const NAME = 'it'
const ended = { since: new Date(), sunset: new Date() }
/** The routes of a router, as a start makes them. */
const routesIn = (served: AnyTRPCRouter) => routesOf(operationsOf(served), 'https://x/v1')
/** A query of the toy with a label of this schema, in its path. */
const labelled = (path: `/${string}`, label: z.ZodType = z.string()) =>
  procedure
    .meta(described('GET', path, { example }))
    .input(z.object({ label, ...(path.includes('{name}') && { name: label }) }))
    .output(Toy)
    .query(give)
const query = reading.input(Toy).output(Toy).query(give)

const create = ({ ctx }: { ctx: Call }) => writeIdempotent(ctx, give)

test.each<[string, object, string]>([
  [
    'a public procedure with an Idempotency-Key',
    procedure
      .meta({ access: { isPublic: true } })
      .meta(described('PUT', '/toys', { takesKey: true, example, exampleInput: example }))
      .input(Toy)
      .output(Toy)
      .mutation(give),
    'is public, so it takes no Idempotency-Key',
  ],
  ['no output', reading.input(Toy).query(give), 'has restMeta(…), so it needs .output(…)'],
  [
    'the meta of trpc-to-openapi alone',
    procedure.meta({ openapi: { method: 'GET', path: '/toys' } }).query(give),
    'has the meta of trpc-to-openapi alone: REST needs restMeta({ … })',
  ],
  [
    'a subscription',
    procedure.subscription(async function* () {}),
    'is a subscription, which the service does not serve',
  ],
  ['an input that is no schema of zod', procedure.input(String).query(give), 'no schema of zod'],
  ['an output that is no schema of zod', procedure.output(String).query(give as never), 'of zod'],
  ...[z.object({ size: z.int() }).transform(() => ({})), z.strictObject({}), z.string()].map(
    (second): [string, object, string] => [
      `a second input of the type ${second.def.type}`,
      procedure
        .input(Toy)
        .input(second as never)
        .query(give),
      'has several inputs, so each must be z.object(…)',
    ],
  ),
  [
    'a field in two inputs',
    procedure
      .input(Toy)
      .input(Toy.extend({ size: z.int() }))
      .query(give),
    'has the field label in two inputs',
  ],
  [
    'an inputId of one input',
    procedure
      .meta(described('GET', '/toys', { inputId: 'Toy', example }))
      .input(Toy)
      .output(Toy)
      .query(give),
    'has an inputId, but its one input has an id',
  ],
  [
    'a body of two inputs without an inputId',
    posting
      .input(Toy)
      .input(z.object({ size: z.int() }))
      .output(Toy)
      .mutation(({ ctx }) => write(ctx, give)),
    'of several inputs, the id is inputId',
  ],
  [
    'a form of errors of its own',
    reading
      .errors(() => undefined)
      .input(Toy)
      .output(Toy)
      .query(give),
    'has .errors(…)',
  ],
  [
    'a GET that writes',
    reading
      .input(Toy)
      .output(Toy)
      .mutation(({ ctx }) => write(ctx, give)),
    'is a mutation',
  ],
  [
    'a PUT that reads',
    procedure
      .meta(described('PUT', '/toys', { example }))
      .input(Toy)
      .output(Toy)
      .query(give),
    'is a query',
  ],
  ['a query that creates', creating.output(Toy).query(give), 'is a query, which takes no'],
  [
    'a page by POST',
    procedure
      .meta(described('POST', '/toys', { isPaged: true, example: [example] }))
      .input(Toy)
      .output(paged(z.array(Toy)))
      .query(async () => ({ items: [], next: undefined })),
    'is a query by POST, whose pages would have no Link',
  ],
  [
    'a query with an Idempotency-Key',
    procedure
      .meta(described('GET', '/toys', { takesKey: true, example }))
      .input(Toy)
      .output(Toy)
      .query(give),
    'is a query, which takes no Idempotency-Key',
  ],
  [
    'a mutation that returns a page',
    procedure
      .meta(described('POST', '/toys', { isPaged: true, example }))
      .input(Toy)
      .output(paged(z.array(Toy)))
      .mutation(give as never),
    'is a mutation, whose output cannot be a page',
  ],
  ['a Location without its field', creating.output(Toy).mutation(create), '{id}'],
  [
    'a Location that is no path',
    creating.output(Toy.extend({ id: z.string().optional() })).mutation(create),
    'creates /toys/{id}, the path of no procedure',
  ],
  ['a path without its field', labelled('/toys/{id}'), '{id}'],
  ['null in a path', labelled('/toys/{label}', z.string().nullable()), 'a URL can have'],
  ['a list in a path', labelled('/toys/{label}', z.array(z.string())), 'which cannot be a list'],
  ['a list of lists in a query', labelled('/toys', z.array(z.array(z.string()))), 'a URL can have'],
  ['a record in a query', labelled('/toys', z.record(z.string(), z.int())), 'a URL can have'],
  ['a number literal in a query', labelled('/toys', z.literal(7)), 'a URL can have'],
  ['literals in a query', labelled('/toys', z.literal(['a', 'b'])), 'a URL can have'],
  ['a bigint literal', labelled('/toys', z.literal(7n)), 'is of the type literal, which REST'],
  ['a union', labelled('/toys', z.union([z.string(), z.int()])), 'is of the type union'],
  [
    'a type that REST cannot read',
    labelled('/toys', z.map(z.string(), z.string())),
    `The input of ${NAME}.label is of the type map`,
  ],
  ...[
    z.strictObject({ name: z.string() }),
    z.looseObject({ name: z.string() }),
    z.object({ name: z.string() }).catchall(z.string()),
  ].flatMap((object): [string, object, string][] => [
    [
      'an object that does not ignore unknown fields',
      reading.input(object).output(Toy).query(give),
      `The input of ${NAME} must ignore unknown fields`,
    ],
    [
      'such an object in a list',
      posting
        .input(Toy.extend({ parts: z.array(z.object({ part: object })) }).meta({ id: 'Parts' }))
        .output(Toy)
        .mutation(create),
      `The input of ${NAME}.parts[].part must ignore unknown fields`,
    ],
  ]),
  [
    'a path with an optional field',
    labelled('/toys/{label}', z.string().optional()),
    'be optional',
  ],
  [
    'a page without a cursor',
    listing
      .input(Toy)
      .output(paged(z.array(Toy)))
      .query(async () => ({ items: [], next: undefined })),
    'needs the inputs of pagingInputs',
  ],
  ['a page that is none', listing.input(Toy).output(Toy).query(give), 'needs .output(paged(…))'],
  [
    'an example that is no output',
    reading
      .input(Toy)
      .output(Toy.extend({ size: z.int() }))
      .query(give as never),
    'has an example that its output rejects',
  ],
  [
    'an example of a body that is no input',
    posting
      .input(Toy.extend({ size: z.int() }).meta({ id: 'Sized' }))
      .output(Toy)
      .mutation(create),
    'has an exampleInput that its input rejects',
  ],
  [
    'a successor that is no path',
    procedure
      .meta(described('GET', '/toys', { deprecated: { ...ended, successor: '/games' }, example }))
      .input(Toy)
      .output(Toy)
      .query(give),
    'has the successor /games, the path of no procedure',
  ],
  [
    'what comes after no procedure',
    procedure
      .meta(described('PUT', '/toys', { after: 'paint', example, exampleInput: example }))
      .input(Toy.meta({ id: 'Toy' }))
      .output(Toy)
      .mutation(create),
    'comes after paint, which is no procedure',
  ],
])('%s: no start', (_what, wrong, problem) => {
  const served = router({ [NAME]: wrong as typeof query })
  expect(() => routesIn(served)).toThrow(TypeError)
  expect(() => routesIn(served)).toThrow(problem)
})

test.each([
  ['the method and the path', labelled('/toys/{label}'), labelled('/toys/{label}')],
  ['the place of another parameter', labelled('/toys/{label}'), labelled('/toys/{name}')],
])('two procedures with %s: no start', (_what, one, other) => {
  const start = () => routesIn(router({ one, other }))
  expect(start).toThrow(/The procedure other serves GET .* which the procedure one, GET/)
})

test('a procedure whose name no Idempotency-Key can have is refused', () => {
  const inner = (length: number) => router({ shop: router({ ['x'.repeat(length)]: query }) })
  expect(routesIn(inner(59))).toHaveLength(1)
  expect(() => routesIn(inner(60))).toThrow('64 characters')
})

test('two procedures whose operationId is the same: no start', () => {
  const [one, other] = [labelled('/toys/{label}'), labelled('/games/{label}')]
  expect(() => routesIn(router({ toysGet: one, toys: { get: other } }))).toThrow(
    'The procedure toys.get has the operationId toysGet, which toysGet has, too',
  )
})

test('a lazy router: no start', () => {
  const inner = lazy(async () => router({ query }))
  expect(() => routesIn(router({ shop: { toys: inner } }))).toThrow('The router shop.toys is lazy')
})

test('a literal segment wins over a parameter, in any order of the procedures', () => {
  const one = labelled('/toys/{label}')
  const count = labelled('/toys/count')
  for (const procedures of [
    { one, count },
    { count, one },
  ]) {
    const { match } = restSurface(routesIn(router(procedures)))
    const at = (path: string) =>
      match({ method: 'HEAD' } as IncomingMessage, { path: `/v1${path}`, query: '' })?.name
    expect([at('/toys/count'), at('/toys/Count'), at('/toys/counts')]).toEqual([
      'count',
      'one',
      'one',
    ])
  }
})
