/** Details of HTTP on which REST, tRPC, the log and README must agree. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { answerOf, type ErrorAnswer, expectTrpcError } from '../support/expect.ts'
import { newMetrics } from '../support/metrics.ts'
import { converse, type RawAnswer } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const metrics = await newMetrics()
const service = await serviceForFile(metrics.variables)
await service.trpc.createPet.mutate({ name: 'Rex', categoryId: 3 })

async function ask(line: string, headers: string[] = [], body = ''): Promise<RawAnswer> {
  const lines = [`${line} HTTP/1.1`, `Authorization: Bearer ${service.key}`, ...headers]
  const host = headers.some((header) => header.startsWith('Host:')) ? [] : ['Host: a']
  const text = `${[...lines, ...host, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`
  const { answers } = await converse(service.origin, text)
  expect(answers).toHaveLength(1)
  return answers[0] as RawAnswer
}

const headers = ['content-type', 'www-authenticate', 'allow', 'vary', 'cache-control']
const shapeOf = (answer: ErrorAnswer) => [
  answer.status,
  ...headers.map((name) => answer.headers.get(name)),
]

test.each([
  ['listPets', 200],
  ['listPets?input=x', 400],
  ['nothing', 404],
  ['createPet', 405],
  ['listPets,listPets?batch=1', 200],
  ['listPets,nothing?batch=1', 207],
])('HEAD /trpc/%s returns the status and the headers of GET: %i', async (path, status) => {
  const request = (method: string, key: string) =>
    answerOf(service.fetch(`/trpc/${path}`, { method, headers: { authorization: key } }))
  for (const key of [`Bearer ${service.key}`, 'Bearer x', '']) {
    const [head, get] = [await request('HEAD', key), await request('GET', key)]
    expect(shapeOf(head)).toEqual(shapeOf(get))
    expect(head.body).toBe('')
    if (key.includes(service.key)) expect(head.status).toBe(status)
  }
})

test.each(['x/y/listPets', '/listPets', 'listPets/', 'x/listPets', 'LISTPETS', '%2FlistPets'])(
  '/trpc/%s is not the URL of a procedure',
  async (path) => {
    expectTrpcError(await ask(`GET /trpc/${path}`), 404, 'NOT_FOUND')
  },
)

test('the log and the metrics name the procedure, also if its name was percent-encoded', async () => {
  const labels = 'surface="trpc",operation="listPets",status="200"'
  const before = await metrics.read(`petstore_requests_total{${labels}}`)
  const { status, headers: answered } = await ask('GET /trpc/list%50ets')
  expect(status).toBe(200)
  const id = String(answered.get('x-request-id'))
  const entry = () =>
    service.logged.map((line) => JSON.parse(line)).find((one) => one.requestId === id)
  while (!entry()) await setTimeout(5)
  expect(entry()).toMatchObject({ surface: 'trpc', operation: 'listPets', status: 200 })
  expect(await metrics.read(`petstore_requests_total{${labels}}`)).toBe(before + 1)
})

test('getPet returns the deprecation headers with an invalid Host, too', async () => {
  const { status, headers } = await ask('GET /v1/pets/1', ['Host: a b'])
  expect(status).toBe(400)
  expect(headers.get('deprecation')).toBe('@1795132800')
  expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
  expect(headers.get('link')).toContain('rel="successor-version"')
})
