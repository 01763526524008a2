/** Idempotency-Keys of any operation: equal and different requests, and repeated responses. */
import { createTRPCClient, httpLink } from '@trpc/client'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { forClients } from '../../client/src/interface.ts'
import {
  dateTimeInput,
  dateTimeOutput,
  int64Input,
  int64Output,
} from '../../src/procedure/fields.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { idempotentWrite } from '../../src/procedure/write.ts'
import { addKey } from '../support/instance.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { restClient } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { errorOf, serviceForFile } from '../support/service.ts'

const fields = {
  title: z.string().optional(),
  subtitle: z.string().optional(),
  year: z.int().nullable().optional(),
  long: int64Input({ description: 'Of 64 bits.' }).optional(),
  day: dateTimeInput({ description: 'A day.' }).optional(),
  sizes: z.array(z.int()).optional(),
  inner: z.object({ one: z.string().optional(), other: z.string().optional() }).optional(),
}
const Made = z
  .object({
    number: z.int(),
    title: z.string().optional(),
    year: z.int().nullable().optional(),
    long: int64Output({ description: 'Of 64 bits.' }).optional(),
    day: dateTimeOutput().optional(),
  })
  .meta({ id: 'Made' })
const example = { number: 1 }

let made = 0
/** A creation that returns its input with a new number. */
const adding = (path: '/books' | '/films') =>
  procedure
    .meta(described('POST', path, { creates: `${path}/{number}`, example, exampleInput: {} }))
    .input(z.object(fields).meta({ id: path === '/books' ? 'NewBook' : 'NewFilm' }))
    .output(Made)
    .mutation(idempotentWrite(async ({ input }) => ({ ...input, number: ++made })))

/** The target of `creates`. */
const getting = (path: '/books' | '/films') =>
  procedure
    .meta(described('GET', `${path}/{number}`, { example }))
    .input(z.object({ number: z.int() }))
    .output(Made)
    .query(async ({ input }) => input)

const served = router({
  getBook: getting('/books'),
  getFilm: getting('/films'),
  addBook: adding('/books'),
  addFilm: adding('/films'),
})
const clientRouter = forClients(served)

let key: string
const service = await serviceForFile({}, { resources: resourcesOf(served) })
beforeEach(() => {
  key = `"${crypto.randomUUID()}"`
})

const add = (path: string, body: unknown) =>
  service.rest('POST', path, { headers: { 'idempotency-key': key }, body })

/** Returns a tRPC client that sends the key of this test. */
const client = () =>
  createTRPCClient<typeof clientRouter>({
    links: [
      httpLink({
        url: `${service.origin}/trpc`,
        transformer,
        headers: { authorization: `Bearer ${service.key}`, 'idempotency-key': key },
      }),
    ],
  })

test('another operation with the same input is another request, on both surfaces', async () => {
  const body = { title: 'Dune' }
  const book = await add('/books', body)
  expect(book.status).toBe(201)
  const before = made
  expect(await add('/films', body)).toMatchObject({ status: 422 })
  expect(await errorOf(client().addFilm.mutate(body))).toMatchObject({ status: 422 })
  expect((await add('/books', body)).text).toBe(book.text)
  expect(made).toBe(before)
})

test('the key of another API key is another request, and each keeps its response', async () => {
  const body = { title: 'Dune' }
  const book = await add('/books', body)
  const rest = restClient(service.origin, await addKey(service.sql, 'other'))
  const other = await rest('POST', '/books', { headers: { 'idempotency-key': key }, body })
  expect(other).toMatchObject({ status: 201, body: { number: made } })
  expect((await add('/books', body)).text).toBe(book.text)
})

describe('another input is another request', () => {
  test.each<[string, object, object]>([
    ['the same value in another field', { title: 'Dune' }, { subtitle: 'Dune' }],
    ['two values exchanged', { title: 'a', subtitle: 'b' }, { title: 'b', subtitle: 'a' }],
    ['null and omitted', { title: 'a', year: null }, { title: 'a' }],
    ['empty and omitted', { title: '' }, {}],
    ['an empty list and omitted', { sizes: [] }, {}],
    ['a list in another order', { sizes: [1, 2] }, { sizes: [2, 1] }],
    ['the end of a number in a list', { sizes: [1, 23] }, { sizes: [12, 3] }],
    ['the last digit', { long: 2n ** 63n - 1n }, { long: 2n ** 63n - 2n }],
    ['a millisecond', { day: '2026-01-02T03:04:05.678Z' }, { day: '2026-01-02T03:04:05.679Z' }],
    ['in an object', { inner: { one: 'a' } }, { inner: { other: 'a' } }],
    ['quotes in a text', { title: 'a","subtitle":"b' }, { title: 'a', subtitle: 'b' }],
    ['a composed and a decomposed letter', { title: 'ä' }, { title: 'a\u0308' }],
  ])('%s', async (_, one, other) => {
    const first = await add('/books', one)
    expect(first.status).toBe(201)
    expect(await add('/books', other)).toMatchObject({
      status: 422,
      body: { code: 'UNPROCESSABLE_CONTENT' },
    })
    expect((await add('/books', one)).text).toBe(first.text)
  })
})

describe('the same input in another notation is the same request', () => {
  test.each([
    ['the order of fields', '{"title":"a","subtitle":"b"}', '{"subtitle":"b","title":"a"}'],
    ['an exponent', '{"long":300,"sizes":[20]}', '{"long":3e2,"sizes":[2e1]}'],
    ['another time zone', '{"day":"2026-01-02T03:04:05Z"}', '{"day":"2026-01-02T04:04:05+01:00"}'],
    ['an escape', '{"title":"ä"}', '{"title":"\\u00e4"}'],
    ['an unknown field', '{"title":"a"}', '{"title":"a","extra":1}'],
    [
      'the order of inner fields',
      '{"inner":{"one":"a","other":"b"}}',
      '{"inner":{"other":"b","one":"a"}}',
    ],
  ])('%s', async (_, one, other) => {
    const first = await add('/films', one)
    expect(first.status).toBe(201)
    expect(await add('/films', other)).toMatchObject({ status: 201, text: first.text })
  })
})

test('a repetition returns every type of value unchanged', async () => {
  const input = {
    title: 'Graz 😀\u2028',
    year: null,
    long: 2n ** 63n - 1n,
    day: new Date('2026-01-02T03:04:05.678Z'),
  }
  const first = await client().addBook.mutate(input)
  expect(first).toEqual({ ...input, number: made })
  expect(await client().addBook.mutate(input)).toEqual(first)
  const { status, text, headers } = await add('/books', input)
  expect([status, headers.get('location')]).toEqual([201, `${service.baseUrl}/books/${made}`])
  expect(text).toContain('"year":null,"long":9223372036854775807,"day":"2026-01-02T03:04:05.678Z"')
})
