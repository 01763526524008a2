/** The store of Idempotency-Keys by its function: equal and different inputs, outputs, calls that fail. */
import { expect, test } from 'vitest'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { Deadline } from '../../db/deadline.ts'
import { keyedWritesOf, onceOf } from '../support/keyed.ts'
import { migratedForFile } from '../support/migrated.ts'

const { db } = await migratedForFile()
const once = onceOf(keyedWritesOf(db))

const forever = () => new Deadline(Number.POSITIVE_INFINITY)
let serial = 0
const USED = { code: 'UNPROCESSABLE_CONTENT' }

/** A request with a new key. */
const newRequest = (input: unknown = 1) => ({
  holder: 1n,
  key: `${serial++}`,
  operation: 'test',
  input,
})

test.for<[what: string, one: object, other: object]>([
  ['the same value in another field', { title: 'Dune' }, { subtitle: 'Dune' }],
  ['two values exchanged', { title: 'a', subtitle: 'b' }, { title: 'b', subtitle: 'a' }],
  ['null and omitted', { title: 'a', year: null }, { title: 'a' }],
  ['empty and omitted', { title: '' }, {}],
  ['an empty list and omitted', { sizes: [] }, {}],
  ['a list in another order', { sizes: [1, 2] }, { sizes: [2, 1] }],
  ['the end of a number in a list', { sizes: [1, 23] }, { sizes: [12, 3] }],
  ['the last digit', { long: 2n ** 63n - 1n }, { long: 2n ** 63n - 2n }],
  ['a millisecond', { day: new Date(1) }, { day: new Date(2) }],
  ['a field in an object', { inner: { one: 'a' } }, { inner: { other: 'a' } }],
  ['quotes in a text', { title: 'a","subtitle":"b' }, { title: 'a', subtitle: 'b' }],
  ['a composed and a decomposed letter', { title: 'ä' }, { title: 'a\u0308' }],
])('another input is another request: %s', async ([, one, other]) => {
  const request = newRequest(one)
  const call = (input: object, output: string) =>
    once({ ...request, input }, forever(), async () => output)
  expect(await call(one, 'first')).toBe('first')
  await expect(call(other, 'second')).rejects.toMatchObject(USED)
  expect(await call({ ...one, more: undefined }, 'third')).toBe('first')
})

/** The second is that of the client's stand-in. */
const stores = Object.entries({ database: once, memory: onceOf(sharedInMemory([]).keyedWrites) })

test.each(stores)(
  'another operation is another request; another holder has its own keys, in %s',
  async (_, once) => {
    const request = newRequest()
    const call = (changed: object, output: string) =>
      once({ ...request, ...changed }, forever(), async () => output)
    expect(await call({}, 'first')).toBe('first')
    await expect(call({ operation: 'other' }, 'second')).rejects.toMatchObject(USED)
    expect(await call({ holder: 2n }, 'second')).toBe('second')
    expect(await call({}, 'third')).toBe('first')
  },
)

test('a repetition returns every type of value unchanged, also long ones', async () => {
  const output = {
    title: 'Graz 😀\u2028',
    year: null,
    long: 2n ** 63n - 1n,
    day: new Date('2026-01-02T03:04:05.678Z'),
    more: 'ä'.repeat(100_000),
  }
  const request = newRequest()
  const call = (made: object) => once(request, forever(), async () => made)
  expect(await call(output)).toEqual(output)
  expect(await call({})).toEqual(output)
})

const ended = () => {
  const deadline = forever()
  deadline.giveUp(new Error('The client has gone'))
  return deadline
}
const cyclic: { self?: object } = {}
cyclic.self = cyclic

test.for<[what: string, input: unknown, deadline: () => Deadline, make: () => Promise<string>]>([
  ['is aborted before it begins', 1, ended, async () => 'made'],
  ['has an input that cannot be compared', cyclic, forever, async () => 'made'],
  ['fails', 1, forever, () => Promise.reject(new Error('It failed'))],
  ['has an output that cannot be stored', 1, forever, async () => (() => {}) as never],
])('a call that %s leaves its key unused', async ([, input, deadline, make]) => {
  const request = newRequest()
  let works = 0
  const work = () => {
    works++
    return make()
  }
  await expect(once({ ...request, input }, deadline(), work)).rejects.toThrow()
  expect(works, 'a failure is not repeated').toBeLessThanOrEqual(1)
  expect(await once(request, forever(), async () => 'made')).toBe('made')
})

test.each(stores)(
  'while a request runs, another one with its key is told so, also with another input, in %s',
  async (_, once) => {
    const request = newRequest()
    const { promise, resolve } = Promise.withResolvers<string>()
    const first = once(request, forever(), () => promise)
    const make = async () => 'made'
    for (const input of [request.input, 2]) {
      const other = once({ ...request, input }, forever(), make)
      await expect(other).rejects.toMatchObject({ code: 'CONFLICT' })
    }
    resolve('first')
    expect(await first).toBe('first')
    expect(await once(request, forever(), make)).toBe('first')
  },
)

test('the end of a request frees its own key alone', async () => {
  const [one, other] = [newRequest(), newRequest()]
  const { promise, resolve } = Promise.withResolvers<string>()
  const short = once(one, ended(), async () => 'made')
  const long = once(other, forever(), () => promise)
  await expect(short).rejects.toThrow()
  const again = once(other, new Deadline(1_000), async () => 'again')
  await expect(again).rejects.toMatchObject({ code: 'CONFLICT' })
  resolve('made')
  expect(await long).toBe('made')
  expect(await once(one, forever(), async () => 'made')).toBe('made')
})
