/** A nested resource: its paths, its links, and a literal segment beside a parameter. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { BY_ID } from '../../../db/order.ts'
import { createStores } from '../../../src/petstore/stores.ts'
import { idempotentWrite } from '../../../src/procedure/idempotent-write.ts'
import { int64Input, int64Output } from '../../../src/procedure/int64.ts'
import { paged, pagingInputs } from '../../../src/procedure/paging.ts'
import { keyedProcedure, router } from '../../../src/procedure/procedure.ts'
import { restMeta } from '../../../src/procedure/rest-meta.ts'
import { write } from '../../../src/procedure/write.ts'
import { errorOf, type Service, startService, trpcClient } from '../../support/service.ts'

const shop = z.string().meta({ description: 'The shop.' })
const orderId = int64Input({ description: 'The order.' })
const Order = z
  .object({ id: int64Output({ description: 'The order.' }), note: z.string() })
  .meta({ id: 'Order' })
const NewOrder = z.object({ shop, note: z.string() }).meta({ id: 'NewOrder' })
const OneOrder = z.object({ shop, orderId })
const OrderCount = z.object({ count: z.int() }).meta({ id: 'OrderCount' })
const ListOrders = z.object({
  shop,
  ...pagingInputs('orders', BY_ID),
  notes: z.array(z.string()).optional(),
})

const words = { tag: 'orders', summary: 'Orders', description: 'Orders.' }
const example = { id: 7n, note: 'soon' }
const found = async ({ input }: { input: { orderId: bigint } }) => ({
  ...example,
  id: input.orderId,
})

const served = router({
  list: keyedProcedure
    .meta(
      restMeta({
        method: 'GET',
        path: '/shops/{shop}/orders',
        paged: true,
        example: [example],
        ...words,
      }),
    )
    .input(ListOrders)
    .output(z.array(Order).meta({ id: 'Orders' }))
    .query(
      paged({ by: BY_ID }, async ({ input: { shop, limit, cursor = 0n } }) => {
        const ids = Array.from({ length: limit }, (_, index) => cursor + BigInt(index) + 1n)
        return { items: ids.map((id) => ({ id, note: shop })), next: ids.at(-1), order: BY_ID }
      }),
    ),
  create: keyedProcedure
    .meta(
      restMeta({
        method: 'POST',
        path: '/shops/{shop}/orders',
        creates: '/shops/{shop}/orders/{id}',
        example,
        exampleInput: { note: 'soon' },
        ...words,
      }),
    )
    .input(NewOrder)
    .output(Order)
    .mutation(idempotentWrite(async ({ input: { note } }) => ({ id: 7n, note }))),
  get: keyedProcedure
    .meta(
      restMeta({
        method: 'GET',
        path: '/shops/{shop}/orders/{orderId}',
        deprecated: {
          since: new Date('2026-11-20'),
          sunset: new Date('2030-12-05'),
          successor: '/shops',
        },
        example,
        ...words,
      }),
    )
    .input(OneOrder)
    .output(Order)
    .query(found),
  change: keyedProcedure
    .meta(
      restMeta({
        method: 'PATCH',
        path: '/shops/{shop}/orders/{orderId}',
        example,
        exampleInput: {},
        ...words,
      }),
    )
    .input(OneOrder.extend({ note: z.string().optional() }).meta({ id: 'OrderChange' }))
    .output(Order)
    .mutation(write(found)),
  remove: keyedProcedure
    .meta(
      restMeta({
        method: 'DELETE',
        path: '/shops/{shop}/orders/{orderId}',
        deprecated: {
          since: new Date('2026-11-20'),
          sunset: new Date('2030-12-05'),
          successor: '/shops',
        },
        ...words,
      }),
    )
    .input(OneOrder)
    .output(z.void())
    .mutation(write(async () => {})),
  // It is declared after the procedure with a parameter in its place.
  count: keyedProcedure
    .meta(
      restMeta({
        method: 'GET',
        path: '/shops/{shop}/orders/count',
        example: { count: 3 },
        ...words,
      }),
    )
    .input(z.object({ shop }))
    .output(OrderCount)
    .query(async () => ({ count: 3 })),
  // Its second segment is a parameter where others have a literal; its third is the reverse.
  menu: keyedProcedure
    .meta(
      restMeta({
        method: 'GET',
        path: '/shops/{shop}/{day}/menü',
        example: { count: 5 },
        ...words,
      }),
    )
    .input(z.object({ shop, day: z.string() }))
    .output(OrderCount)
    .query(async () => ({ count: 5 })),
})

let service: Service
beforeAll(async () => {
  const resources = { router: served, tags: { orders: 'What is ordered.' }, createStores }
  service = await startService({ CORS_ORIGINS: 'https://shop.example' }, { resources })
})
afterAll(() => service.stop())

/** The value of a path parameter, and its percent-encoded form in a URL. */
const shops = [
  ['corner', 'corner'],
  ['a/b c?d>e', 'a%2Fb%20c%3Fd%3Ee'],
  ['50%', '50%25'],
  ['ä', '%C3%A4'],
  ['{shop}', '%7Bshop%7D'],
] as const

test.each(shops)(
  'Link of a list of shop %s has the values of the path parameters',
  async (shop, encoded) => {
    const path = `/shops/${encodeURIComponent(shop)}/orders`
    const first = await service.rest('GET', `${path}?limit=2&notes=x&notes=a%26b`)
    expect(first.headers.get('link')).toBe(
      `<${service.baseUrl}/shops/${encoded}/orders?limit=2&cursor=2&notes=x&notes=a%26b>; rel="next"`,
    )
    const next = first.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
    const second = await service.rest('GET', next ?? '')
    expect(second.body).toEqual([
      { id: 3, note: shop },
      { id: 4, note: shop },
    ])
  },
)

test.each(shops)(
  'Location of a created order of shop %s has both path parameters',
  async (shop, encoded) => {
    const made = await service.rest('POST', `/shops/${encodeURIComponent(shop)}/orders`, {
      body: { note: 'soon', shop: 'not this one' },
    })
    expect(made.status).toBe(201)
    const location = made.headers.get('location') ?? ''
    expect(location).toBe(`${service.baseUrl}/shops/${encoded}/orders/7`)
    const { body } = await service.rest('GET', location.slice(service.baseUrl.length))
    expect(body).toEqual({ id: 7, note: 'soon' })
  },
)

test.each(['count', 'c%6Funt', '%63ount'])(
  'a literal segment (%s) wins over a parameter that is declared before it',
  async (segment) => {
    const { status, body, headers } = await service.rest('GET', `/shops/x/orders/${segment}`)
    expect({ status, body }).toEqual({ status: 200, body: { count: 3 } })
    expect(headers.get('deprecation')).toBeNull()
    expect((await service.rest('HEAD', `/shops/x/orders/${segment}`)).status).toBe(200)
  },
)

test.each(['menü', 'men%C3%BC', 'men%c3%bc', '%6Den%C3%BC'])(
  'a literal segment matches with and without percent-encoding: %s',
  async (segment) => {
    const { status, body } = await service.rest('GET', `/shops/x/monday/${segment}`)
    expect({ status, body }).toEqual({ status: 200, body: { count: 5 } })
  },
)

test('the leftmost literal segment wins', async () => {
  // So this path is that of an order with an invalid id, not that of the menu of a day.
  expect((await service.rest('GET', '/shops/x/orders/menü')).status).toBe(400)
  expect((await service.rest('GET', '/shops/orders/orders/count')).body).toEqual({ count: 3 })
  for (const path of ['/shops/x', '/shops/x/orders/', '/shops//orders', '/shops/x/orders/7/8']) {
    expect((await service.rest('GET', path)).status, path).toBe(404)
  }
})

test('Allow has the methods of the matched path only', async () => {
  for (const [path, allow] of [
    ['/shops/x/orders/count', 'GET, HEAD'],
    ['/shops/x/orders/c%6funt', 'GET, HEAD'],
    ['/shops/x/orders/7', 'GET, HEAD, PATCH, DELETE'],
    ['/shops/x/orders', 'GET, HEAD, POST'],
  ] as const) {
    const refused = await service.rest('PUT', path)
    expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, allow])
  }
  expect((await service.rest('DELETE', '/shops/x/orders/count')).status).toBe(405)
})

test('204 has no Content-Type and no content in the document', async () => {
  const removed = await service.rest('DELETE', '/shops/x/orders/7')
  expect(removed).toMatchObject({ status: 204, text: '', body: undefined })
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) {
    expect(removed.headers.get(name), name).toBeNull()
  }
  expect(removed.headers.get('cache-control')).toBe('no-store')
  expect(removed.headers.get('x-content-type-options')).toBe('nosniff')
  expect(removed.headers.get('deprecation')).toBe('@1795132800')
  // Its errors have content.
  const refused = await service.rest('DELETE', '/shops/x/orders/y')
  expect([refused.status, refused.headers.get('content-type')]).toEqual([400, 'application/json'])
})

test('tRPC has the same operations', async () => {
  const client = trpcClient<typeof served>(service.origin, service.key)
  expect(await client.count.query({ shop: 'x' })).toEqual({ count: 3 })
  expect(await client.create.mutate({ shop: 'x', note: 'soon' })).toEqual(example)
  expect(await client.list.query({ shop: 'x', limit: 1, cursor: 4 })).toEqual([
    { id: 5n, note: 'x' },
  ])
  expect(await client.remove.mutate({ shop: 'x', orderId: 7 })).toBeUndefined()
  expect(await errorOf(client.get.query({ shop: 'x', orderId: 1.5 }))).toMatchObject({
    status: 400,
  })
})

test('the examples of links in the document have no braces', async () => {
  const { text } = await service.rest('GET', '/openapi.json')
  const { components } = JSON.parse(text)
  expect(components.headers.Link.example).not.toMatch(/[{}]/)
  expect(components.headers.Location.example).not.toMatch(/[{}]/)
})
