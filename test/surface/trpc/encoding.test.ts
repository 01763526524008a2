/** The encoding of tRPC accepts no value that REST rejects. */
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

test('a query parameter after 1500 others is validated', async () => {
  const answer = await service.rest('GET', `/pets?${'a&'.repeat(1_500)}limit=1000`)
  expect(answer.status).toBe(400)
})
