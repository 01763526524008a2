/** The service does not start with a description that contradicts its procedure. The error names the cause. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { paged } from '../../../src/procedure/paging.ts'
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
const creating = (creates: `/${string}`) =>
  procedure.meta(described('POST', '/toys', { creates, example, exampleInput: example }))
/** A query of the toy with a label of this schema, in its path. */
const labelled = (path: `/${string}`, label: z.ZodType = z.string()) =>
  procedure
    .meta(described('GET', path, { example }))
    .input(z.object({ label }))
    .output(Toy)
    .query(give)
const query = reading.input(Toy).output(Toy).query(give)

test.each<[string, Record<string, unknown>, string]>([
  ['no meta', { it: procedure.input(Toy).output(Toy).query(give) }, 'needs .meta'],
  ['no output', { it: reading.input(Toy).query(give) }, 'an .output'],
  [
    'a GET that writes',
    { it: reading.input(Toy).output(Toy).mutation(write(give)) },
    'is a mutation',
  ],
  ['a POST that reads', { it: posting.input(Toy).output(Toy).query(give) }, 'is a query'],
  [
    'a query with a transaction',
    { it: reading.input(Toy).output(Toy).query(write(give)) },
    'must be made by write',
  ],
  [
    'a mutation without one',
    { it: posting.input(Toy).output(Toy).mutation(give) },
    'must be made by write',
  ],
  [
    'a creation without Idempotency-Key',
    { it: creating('/toys/{label}').input(Toy).output(Toy).mutation(write(give)) },
    '`creates`',
  ],
  [
    'an Idempotency-Key that is not described',
    { it: posting.input(Toy).output(Toy).mutation(idempotentWrite(give)) },
    '`creates`',
  ],
  [
    'pages that are not described',
    {
      it: reading
        .input(Toy)
        .output(z.array(Toy))
        .query(paged(async () => ({ items: [example], next: undefined }))),
    },
    '`paged`',
  ],
  [
    'a Location without its field',
    { it: creating('/toys/{id}').input(Toy).output(Toy).mutation(idempotentWrite(give)) },
    '{id}',
  ],
  ['a path without its field', { it: labelled('/toys/{id}') }, '{id}'],
  ['null in a path', { it: labelled('/toys/{label}', z.string().nullable()) }, 'no URL can have'],
  ['a list in a query', { it: labelled('/toys', z.array(z.string())) }, 'no URL can have'],
  [
    'a type that REST cannot encode',
    { it: labelled('/toys', z.map(z.string(), z.string())) },
    'The input of it.label is of the type map',
  ],
  ['a long name', { [`it${'x'.repeat(63)}`]: query }, '64 characters'],
  ['two operations at one path', { it: query, again: query }, '/toys'],
  [
    'two names of one parameter',
    {
      it: labelled('/toys/{label}'),
      other: procedure
        .meta(described('GET', '/toys/{id}', { example }))
        .input(z.object({ id: z.string() }))
        .output(Toy)
        .query(give),
    },
    '/toys/{label} and /toys/{id}',
  ],
])('%s: no start', (_what, procedures, problem) => {
  const start = () =>
    restSurface(operationsOf(router(procedures as Parameters<typeof router>[0])), 'https://x/v1')
  expect(start).toThrow(TypeError)
  expect(start).toThrow(problem)
})

test('a literal segment wins over a parameter, in any order of the procedures', () => {
  const one = labelled('/toys/{label}')
  const count = labelled('/toys/count')
  for (const procedures of [
    { one, count },
    { count, one },
  ]) {
    const { match } = restSurface(operationsOf(router(procedures)), 'https://x/v1')
    const at = (path: string) =>
      (match({ method: 'HEAD' } as never, { path, query: '' } as never) as { operation: string })
        .operation
    expect([at('/toys/count'), at('/toys/Count'), at('/toys/counts')]).toEqual([
      'count',
      'one',
      'one',
    ])
  }
})
