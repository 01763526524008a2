/** The service does not start with a description that contradicts its procedure. The error names the cause. */
import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { procedure, router } from '../../../src/procedure/procedure.ts'
import { idempotentWrite, write } from '../../../src/procedure/write.ts'
import { operationsOf } from '../../../src/surface/rest/operations.ts'
import { restSurface } from '../../../src/surface/rest/surface.ts'
import { described } from '../../support/procedures.ts'

const Toy = z.object({ label: z.string() }).meta({ id: 'Toy' })
const example = { label: 'Ball' }
const give = async () => example
const reading = procedure.meta(described('GET', '/toys', { example }))
const posting = procedure.meta(described('POST', '/toys', { example, exampleInput: example }))
const creating = procedure
  .meta(described('POST', '/toys', { creates: '/toys/{id}', example, exampleInput: example }))
  .input(Toy)
const NAME = 'it'
const baseUrl = 'https://x/v1'
/** A query of the toy with a label of this schema, in its path. */
const labelled = (path: `/${string}`, label: z.ZodType = z.string()) =>
  procedure
    .meta(described('GET', path, { example }))
    .input(z.object({ label }))
    .output(Toy)
    .query(give)
const query = reading.input(Toy).output(Toy).query(give)

const mutation = posting.input(Toy).output(Toy)

test.each<[string, object, string]>([
  ['no meta', procedure.input(Toy).output(Toy).query(give), 'needs .meta'],
  ['no output', reading.input(Toy).query(give), 'one .output'],
  [
    'a middleware',
    reading
      .use(({ next }) => next())
      .input(Toy)
      .output(Toy)
      .query(give),
    'no .use',
  ],
  ['a GET that writes', reading.input(Toy).output(Toy).mutation(write(give)), 'is a mutation'],
  ['a POST that reads', posting.input(Toy).output(Toy).query(give), 'is a query'],
  [
    'a query with a transaction',
    reading.input(Toy).output(Toy).query(write(give)),
    'must be made by write',
  ],
  ['a mutation without one', mutation.mutation(give), 'must be made by write'],
  ['a Location without its field', creating.output(Toy).mutation(idempotentWrite(give)), '{id}'],
  [
    'a Location that is no path',
    creating.output(Toy.extend({ id: z.string() })).mutation(idempotentWrite(give as never)),
    'creates /toys/{id}, the path of no procedure',
  ],
  ['a path without its field', labelled('/toys/{id}'), '{id}'],
  ['null in a path', labelled('/toys/{label}', z.string().nullable()), 'a URL can have'],
  ['a list in a query', labelled('/toys', z.array(z.string())), 'a URL can have'],
  [
    'a type that REST cannot read',
    labelled('/toys', z.map(z.string(), z.string())),
    `The input of ${NAME}.label is of the type map`,
  ],
])('%s: no start', (_what, wrong, problem) => {
  const start = () => operationsOf(router({ [NAME]: wrong as typeof query }), baseUrl)
  expect(start).toThrow(TypeError)
  expect(start).toThrow(problem)
})

test('a procedure whose name no Idempotency-Key can have is refused', () => {
  expect(operationsOf(router({ ['x'.repeat(64)]: query }), baseUrl)).toHaveLength(1)
  expect(() => operationsOf(router({ ['x'.repeat(65)]: query }), baseUrl)).toThrow('64 characters')
})

test('a literal segment wins over a parameter, in any order of the procedures', () => {
  const one = labelled('/toys/{label}')
  const count = labelled('/toys/count')
  for (const procedures of [
    { one, count },
    { count, one },
  ]) {
    const { match } = restSurface(operationsOf(router(procedures), baseUrl))
    const at = (path: string) =>
      match({ method: 'HEAD' } as IncomingMessage, { path: `/v1${path}`, query: '' })?.operation
        .name
    expect([at('/toys/count'), at('/toys/Count'), at('/toys/counts')]).toEqual([
      'count',
      'one',
      'one',
    ])
  }
})
