/** The encoding of tRPC accepts no value that REST rejects, and no longer one. */
import { expect, test } from 'vitest'
import { serviceForFile } from '../../support/service.ts'

const service = await serviceForFile()

test.each([
  '""',
  'true',
  '[5]',
  '"0x10"',
  '" 7 "',
  '" 7"',
  '"+7"',
  '"7n"',
  '"-"',
  '"7.0"',
  'null',
  '7',
])('a bigint encoded as %s is rejected', async (written) => {
  const input = `[{"name":1,"categoryId":2},"Rex",["BigInt",${written}]]`
  const request = { method: 'POST', body: JSON.stringify(input) }
  expect((await service.fetch('/trpc/createPet', request)).status).toBe(400)
})

const many = (count: number, place: number) => `[${Array.from({ length: count }, () => place)}]`
const pet = (more: string) => `[{"name":1,"categoryId":2,"more":3},"Rex",3,${more}]`

test.each([
  ['lists of equal lists', pet(`${many(300, 4)},${many(300, 1)}`), 413],
  ['a list of equal texts', pet(`${many(300, 4)},"${'x'.repeat(300)}"`), 413],
  ['a list that contains itself', pet('[3]'), 413],
  ['a Set of such lists', pet(`["Set",4],${many(300, 5)},${many(300, 1)}`), 413],
  ['a Map with such lists', pet(`["Map",1,4],${many(300, 5)},${many(300, 1)}`), 413],
  ['a Map that has such a list as a key', pet(`["Map",4,1],${many(300, 5)},${many(300, 1)}`), 413],
  ['lists that REST would accept', pet(`${many(100, 4)},${many(100, 1)}`), 200],
])('an input that is short because it has equal values once: %s', async (_, input, expected) => {
  expect(input.length).toBeLessThan(2_000)
  const post = (path: string, body: unknown, headers = {}) =>
    service.fetch(path, { method: 'POST', body: JSON.stringify(body), headers })
  expect((await post('/trpc/createPet', input)).status).toBe(expected)
  expect((await post('/trpc/createPet?batch=1', { 0: input })).status).toBe(expected)
  const streamed = await post(
    '/trpc/createPet?batch=1',
    { 0: input },
    { 'trpc-accept': 'application/jsonl' },
  )
  expect(await streamed.text()).toMatch(expected === 413 ? /PAYLOAD_TOO_LARGE/ : /Rex/)
})

test.each([
  ['Rex', 200],
  ['Rexx', 413],
])('an input of 65,536 characters and values is the greatest: %s', async (name, expected) => {
  // The object, the category, the list and its equal texts have 65,533.
  const input = `[{"name":1,"categoryId":2,"more":3},"${name}",3,${many(6_553, 4)},"0123456789"]`
  const request = { method: 'POST', body: JSON.stringify(input) }
  expect((await service.fetch('/trpc/createPet', request)).status).toBe(expected)
})
