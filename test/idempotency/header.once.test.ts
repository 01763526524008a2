/** The Idempotency-Key header: valid values, and values that are the same key. */
import { expect, test } from 'vitest'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

const create = (key: string) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { name: 'Rex', categoryId: 3 },
  })

test.each([
  ...['', '""', '"a', 'two words', '"ä"', '"a", "b"', 'a,b', 'a;b', 'a"b', '"a"b"', '"a\\b"'],
  ...[
    'undefined',
    '"null"',
    'NaN',
    'None',
    '"a\\"',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
    `"${'y'.repeat(255)}\\""`,
  ],
])('Idempotency-Key: %s returns 400', async (key) => {
  const answer = await create(Buffer.from(key).toString('latin1'))
  expect(answer.body).toEqual({
    code: 'BAD_REQUEST',
    message:
      'The header Idempotency-Key must be one string of 1 to 255 ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324", and not undefined, null, NaN or None',
    status: 400,
  })
})

test.each([
  ['8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
  ["!#$%&'()*+-./09:<=>?@AZ[\\]^_`az{|}~", "!#$%&'()*+-./09:<=>?@AZ[\\\\]^_`az{|}~"],
  ['y'.repeat(255), 'y'.repeat(255)],
  ['\\'.repeat(255), '\\\\'.repeat(255)],
])('%s is the same key with and without quotes', async (bare, quoted) => {
  const first = await create(bare)
  const second = await create(`"${quoted}"`)
  expect([first.status, second.text]).toEqual([201, first.text])
})

test.each(['"one word, and; more"', '"\\"quoted\\""', '" "', `"${'y'.repeat(254)}\\""`])(
  '%s is one key',
  async (key) => {
    const first = await create(key)
    expect([first.status, (await create(key)).text]).toEqual([201, first.text])
  },
)

test('keys that differ in case, trailing spaces or the last character are different keys', async () => {
  const long = 'x'.repeat(254)
  const keys = ['"case"', '"CASE"', '"case "', `${long}1`, `${long}2`]
  const answers = await Promise.all(keys.map(create))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(keys.length)
})

test('operations without a key ignore the header', async () => {
  const answer = await service.rest('GET', '/pets', { headers: { 'idempotency-key': '""' } })
  expect(answer.status).toBe(200)
})
