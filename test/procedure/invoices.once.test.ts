/** Ready-made schemas for dates, decimals and quantities, on both surfaces and in the document. */
import { expect, test } from 'vitest'
import { decimalInput } from '../../src/procedure/decimal.ts'
import { resourcesOf } from '../support/procedures.ts'
import { errorOf, serviceForFile, trpcClient } from '../support/service.ts'
import { invoicesRouter } from './invoices.ts'

const service = await serviceForFile({}, { resources: resourcesOf(invoicesRouter()) })
const client = trpcClient<ReturnType<typeof invoicesRouter>>(service.origin, service.key)

const sentAt = '2026-01-02T03:04:05.678Z'
const invoice = { amount: '19.90', copies: 2, dueOn: '2024-02-29', sentAt }
const post = (body: object) => service.rest('POST', '/invoices', { body })

test('an invoice is the same on both surfaces', async () => {
  const made = await post(invoice)
  const { id } = made.body as { id: number }
  expect(made.text).toBe(JSON.stringify({ id, ...invoice }))
  const output = { ...invoice, id: BigInt(id), sentAt: new Date(sentAt) }
  expect(await client.get.query({ invoiceId: id })).toEqual(output)
  const second = await client.create.mutate({ ...invoice, sentAt: new Date(sentAt) })
  expect(second).toEqual({ ...output, id: second.id })
  const { body } = await service.rest('GET', `/invoices/${second.id}`)
  expect(body).toEqual({ id: Number(second.id), ...invoice })
})

test.each([
  ['0', '0.00'],
  ['0.0', '0.00'],
  ['7', '7.00'],
  ['7.5', '7.50'],
  ['99999999.99', '99999999.99'],
])('the amount %s is returned as %s', async (written, amount) => {
  expect((await post({ ...invoice, amount: written })).body).toMatchObject({ amount })
  const input = { ...invoice, amount: written, sentAt: null }
  expect(await client.create.mutate(input)).toMatchObject({ amount })
  const { body } = await service.rest('GET', `/invoices?amount=${written}&limit=1`)
  expect(body).toMatchObject([{ amount }])
})

test.each([
  ['-0', '0.000'],
  ['-0.001', '-0.001'],
  ['-12', '-12.000'],
  ['999999999999999.999', '999999999999999.999'],
  ['-999999999999999.999', '-999999999999999.999'],
])('the balance %s is returned as %s', async (written, balance) => {
  expect((await post({ ...invoice, balance: written })).body).toMatchObject({ balance })
})

const decimal =
  'must be a decimal number of at least 0 in a string, such as "2.50", with at most 8 digits before the point and 2 after it'
const signed =
  'must be a decimal number in a string, such as "0.250", with at most 15 digits before the point and 3 after it'
const time = 'must be a date and time in the years 0000 to 9999 (UTC), such as 2026-01-02T03:04:05Z'
const leapSecond = 'must not be a leap second: send the second before it'
const day = 'must be a day of the calendar, such as 2026-01-02'
const quantity = 'must be an integer from 0 to 1000'

test.each<[object, string]>([
  ...[19.9, 19, true, null, [], '', '-1', '+1', '1.', '.5', '01', '1.234', '123456789', '1e2']
    .concat(['1,5', ' 1', '1\n', 'NaN', '１'])
    .map((amount): [object, string] => [{ amount }, `amount ${decimal}`]),
  ...[1, '', '+1', '1.2345', '-1234567890123456'].map((balance): [object, string] => [
    { balance },
    `balance ${signed}`,
  ]),
  ...['2026-02-31T00:00:00Z', '9999-12-31T23:59:59-23:59', '2026-01-02T24:00:00Z', '2026-01-02']
    .concat(['0000-01-01T00:00:00+00:01', `2026-01-02T00:00:00.${'0'.repeat(15)}Z`])
    .map((sentAt): [object, string] => [{ sentAt }, `sentAt ${time}`]),
  ...['2016-12-31T23:59:60Z', '2016-12-31t23:59:60.5z', '2017-01-01T00:59:60+01:00'].map(
    (sentAt): [object, string] => [{ sentAt }, `sentAt ${leapSecond}`],
  ),
  ...[
    '2026-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-13-01',
    '2026-1-2',
    '20260102',
    '',
    '2026-01-02Z',
  ]
    .concat(['2026-01-02T00:00:00Z', '10000-01-01', '-0001-01-01'])
    .map((dueOn): [object, string] => [{ dueOn }, `dueOn ${day}`]),
  [{ dueOn: 20260102 }, 'dueOn must be a string'],
  ...[1.5, -1.5, 1e300, '2', null].map((copies): [object, string] => [
    { copies },
    `copies ${quantity}`,
  ]),
  [{ copies: -1 }, 'copies must be at least 0'],
  [{ copies: 1001 }, 'copies must be at most 1000'],
  [{ note: ' '.repeat(41) }, 'note must have at most 40 characters'],
])('%j is rejected on both surfaces', async (wrong, message) => {
  const { body } = await post({ ...invoice, ...wrong })
  expect(body).toEqual({ code: 'BAD_REQUEST', message, status: 400 })
  const input = { ...invoice, sentAt: null, ...wrong }
  expect(await errorOf(client.create.mutate(input as never))).toMatchObject({
    status: 400,
    message,
  })
})

test.each([
  new Date('+010000-01-01T00:00:00Z'),
  new Date('-000001-12-31T23:59:59.999Z'),
  new Date(8.64e15),
  new Date(Number.NaN),
  Object.create(null) as Date, // String() throws for it
])('the Date %j is rejected on tRPC', async (sentAt) => {
  const message = `sentAt ${time}`
  const calls = [
    client.create.mutate({ ...invoice, sentAt }),
    client.change.mutate({ invoiceId: 1, sentAt }),
    client.list.query({ sentAt }),
  ]
  for (const error of await Promise.all(calls.map(errorOf))) {
    expect(error).toEqual({ code: 'BAD_REQUEST', status: 400, message })
  }
})

test('missing fields are reported as required', async () => {
  const { body } = await post({})
  const names = ['amount', 'copies', 'dueOn', 'sentAt']
  expect(body).toMatchObject({ message: names.map((name) => `${name} is required`).join('; ') })
})

test('the minimum and the maximum date-time are stored unchanged', async () => {
  for (const sentAt of ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z']) {
    expect((await post({ ...invoice, sentAt })).body).toMatchObject({ sentAt })
    const made = await client.create.mutate({ ...invoice, sentAt: new Date(sentAt) })
    expect(made.sentAt?.toISOString()).toBe(sentAt)
  }
})

test('PATCH with null clears a date-time, and PATCH without the field keeps it', async () => {
  const { body } = await post(invoice)
  const path = `/invoices/${(body as { id: number }).id}`
  expect((await service.rest('PATCH', path, { body: {} })).body).toMatchObject({ sentAt })
  const cleared = await service.rest('PATCH', path, { body: { sentAt: null } })
  expect(cleared.body).toMatchObject({ sentAt: null })
})

test('query parameters may have these types, and the Link to the next page keeps them', async () => {
  const sent = { ...invoice, amount: '5', dueOn: '2025-12-31', copies: 0 }
  for (const _ of [1, 2]) await post(sent)
  const query = new URLSearchParams({
    ...sent,
    copies: '0',
    sentAt: '2026-01-02T04:04:05.678+01:00',
  })
  const first = await service.rest('GET', `/invoices?${query}&limit=1`)
  const next = first.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1] ?? ''
  expect(Object.fromEntries(new URLSearchParams(next.split('?')[1]))).toMatchObject({
    dueOn: '2025-12-31',
    amount: '5',
    copies: '0',
    sentAt,
  })
  const second = await service.rest('GET', next)
  expect([first.body, second.body]).toMatchObject([[{ amount: '5.00' }], [{ amount: '5.00' }]])
  expect(second.headers.get('link')).toBeNull()
  for (const wrong of [
    'dueOn=2026-02-31',
    'sentAt=2026-02-31T00:00:00Z',
    'amount=1e2',
    'copies=-1',
  ]) {
    expect((await service.rest('GET', `/invoices?${wrong}`)).status, wrong).toBe(400)
  }
})

test('a quantity without a maximum of its own is an int32', async () => {
  const withCopies = (copies: number) => service.rest('GET', `/invoices?copies=${copies}`)
  expect(await withCopies(2 ** 31 - 1)).toMatchObject({ status: 200, text: '[]' })
  expect((await withCopies(2 ** 31)).body).toMatchObject({
    message: 'copies must be at most 2147483647',
  })
  expect((await withCopies(1.5)).body).toMatchObject({
    message: 'copies must be an integer from 0 to 2147483647',
  })
})

test('path parameters may have these types', async () => {
  const path = (day: string, at: string) => `/days/${day}/sent/${at}/copies/2/amounts/19.9`
  const { body } = await service.rest('GET', path('2024-02-29', encodeURIComponent(sentAt)))
  expect(body).toEqual({ id: 7, ...invoice })
  expect((await service.rest('GET', path('2026-02-29', sentAt))).status).toBe(400)
  expect((await service.rest('GET', path('2024-02-29', '2026-02-29T00:00:00Z'))).status).toBe(400)
})

test('the document has a format, a length and a range for each', async () => {
  const { text } = await service.rest('GET', '/openapi.json')
  const { schemas } = JSON.parse(text).components
  expect(schemas.NewInvoice.properties).toMatchObject({
    amount: { type: 'string', minLength: 1, maxLength: 11, examples: ['19.90'] },
    balance: { type: 'string', maxLength: 20 },
    copies: { type: 'integer', format: 'int32', minimum: 0, maximum: 1000, examples: [2] },
    dueOn: {
      type: 'string',
      format: 'date',
      minLength: 10,
      maxLength: 10,
      examples: ['2026-02-28'],
    },
    note: { type: 'string', minLength: 1, maxLength: 40 },
    sentAt: {
      anyOf: [
        { type: 'string', format: 'date-time', maxLength: 35, examples: ['2026-01-02T03:04:05Z'] },
        { type: 'null' },
      ],
    },
  })
  expect(schemas.Invoice.properties).toMatchObject({
    amount: { type: 'string', maxLength: 11 },
    copies: { type: 'integer', format: 'int32', minimum: 0, maximum: 1000 },
    dueOn: { type: 'string', format: 'date', maxLength: 10 },
    note: { type: 'string', minLength: 1, maxLength: 40 },
    sentAt: { anyOf: [{ type: 'string', format: 'date-time', maxLength: 24 }, { type: 'null' }] },
  })
})

test.each([
  [
    'NewInvoice',
    'amount',
    ['0', '19.9', '12345678.90'],
    ['', '-1', '1.234', '01', '123456789', '1.'],
  ],
  ['NewInvoice', 'balance', ['-0.125', '7'], ['--1', '1.2345', '.5']],
  ['NewInvoice', 'dueOn', ['2024-02-29'], ['2026-02-29', '2026-1-2', '2026-01-02T00:00:00Z']],
  ['NewInvoice', 'note', ['x', ' x '], ['', ' ', 'a\0']],
  [
    'NewInvoice',
    'sentAt',
    ['2024-02-29T23:59:59Z', '2026-01-02t03:04:05.123456-23:59'],
    ['2026-02-29T00:00:00Z', '2026-01-02', '2026-01-02T24:00:00Z', '2016-12-31T23:59:60Z'],
  ],
  ['Invoice', 'amount', ['0.00', '19.90'], ['0', '19.9']],
  ['Invoice', 'dueOn', ['2024-02-29'], ['2026-02-29']],
])('the document has the pattern of %s.%s', async (schema, field, valid, invalid) => {
  const { text } = await service.rest('GET', '/openapi.json')
  const described = JSON.parse(text).components.schemas[schema].properties[field]
  const pattern = new RegExp((described.anyOf?.[0] ?? described).pattern, 'u')
  for (const value of valid) expect(value).toMatch(pattern)
  for (const value of invalid) expect(value).not.toMatch(pattern)
})

test('a decimal of more than 18 digits, or with none on one side of the point, is rejected at the start', () => {
  for (const size of [
    { precision: 19, scale: 2 },
    { precision: 2, scale: 2 },
    { precision: 3, scale: 0 },
  ]) {
    expect(() => decimalInput({ description: 'A price.' }, size)).toThrow('at most 18 digits')
  }
})
