/** Each operation can return every error that the document lists for it. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { afterAll, expect, test } from 'vitest'
import { engine } from '../../support/database.ts'
import { holdWrites } from '../../support/hold.ts'
import {
  type Kind,
  type Operation,
  operations,
  operationsIn,
  send,
  tables,
} from '../../support/operations.ts'
import { type RawAnswer, unfinished } from '../../support/raw.ts'
import type { Answer, RestClient, RestInit } from '../../support/rest.ts'
import { keys, type Service, serviceForFile } from '../../support/service.ts'
import { startUnreachable } from '../../support/unreachable.ts'
import { teamResources } from '../../teams/context.ts'
import { teamRouter } from '../../teams/router.ts'

const service = await serviceForFile()
const limited = await serviceForFile({ RATE_LIMIT: '1' })
await limited.rest('GET', '/pets')
const broken = await serviceForFile()
for (const table of tables) await broken.sql(`drop table ${table}`)
const teams = await serviceForFile({}, { resources: teamResources })
const unreachable = await startUnreachable()
afterAll(() => unreachable.stop())

/** Makes one of the calls of an operation; what it needs is created in `service`. */
const call = async (operation: Operation, kind?: Kind, init?: RestInit, client?: RestClient) =>
  send(client ?? service.rest, await operation.prepare(service.rest, kind), init)

/** The response to a call while another call under the same key is blocked. */
async function conflict(operation: Operation): Promise<Answer> {
  const headers = { 'idempotency-key': `"running ${operation.name}"` }
  const good = await operation.prepare(service.rest)
  const letGo = await holdWrites(service.databaseUrl)
  const calls = [send(service.rest, good, { headers }), send(service.rest, good, { headers })]
  const first = await Promise.race(calls).finally(letGo)
  await Promise.all(calls)
  return first
}

// A statement on the embedded engine blocks the whole process, so calls are never concurrent.
// Without a key, 409 is of the resource, whose own test has it.
const isMet = ({ takesIdempotencyKey }: Operation, status: string) =>
  status !== '409' || (takesIdempotencyKey && engine !== 'sqlite')

/** The response to another call under a used key. */
async function reuse(operation: Operation): Promise<Answer> {
  const headers = { 'idempotency-key': `"used ${operation.name}"` }
  expect((await call(operation, 'other', { headers })).status).toBeLessThan(300)
  return await call(operation, 'good', { headers })
}

/** The response to a request that does not arrive. Its operation is unknown. */
async function tooSlow(): Promise<Answer> {
  const [{ answers } = { answers: [] }] = await unfinished(limited.origin, [
    ['GET /v1/pets HTTP/1.1\r\nHost: x\r\n'],
  ])
  const { status, headers, body: text } = answers[0] as RawAnswer
  return { status, headers, text, body: JSON.parse(text) }
}

async function asReader({ databaseUrl }: Service): Promise<NonNullable<RestInit['headers']>> {
  const { key } = await keys.create(databaseUrl, 'reader', undefined, true)
  return { authorization: `Bearer ${key}` }
}

const provoke: Record<string, (operation: Operation) => Promise<Answer>> = {
  400: (operation) => call(operation, 'invalid'),
  401: (operation) => call(operation, 'good', { headers: { authorization: undefined } }),
  403: async (operation) => call(operation, 'good', { headers: await asReader(service) }),
  404: (operation) => call(operation, 'missing'),
  408: tooSlow,
  409: conflict,
  413: (operation) => call(operation, 'good', { body: ' '.repeat(70_000) }),
  415: (operation) => call(operation, 'good', { headers: { 'content-type': 'text/json' } }),
  422: reuse,
  429: (operation) => call(operation, 'good', {}, limited.rest),
  431: (operation) => call(operation, 'good', { headers: { 'x-long': 'x'.repeat(20_000) } }),
  500: (operation) => call(operation, 'good', {}, broken.rest),
  503: (operation) => call(operation, 'good', {}, unreachable.rest),
}

/** The errors that the document must list for an operation. */
const expectedOf = ({
  changes,
  hasBody,
  hasConflict,
  isPublic,
  namesOne,
  takesIdempotencyKey,
  thrown,
}: Operation) => {
  const statuses = [
    ...[400, 408, 429, 431, 500, 503],
    ...(isPublic ? [] : [401]),
    ...(namesOne ? [404] : []),
    ...(takesIdempotencyKey || hasConflict ? [409] : []),
    ...(takesIdempotencyKey ? [422] : []),
    ...(changes && !isPublic ? [403] : []),
    ...(hasBody ? [413, 415] : []),
    ...thrown.map((error) => getHTTPStatusCodeFromError(new TRPCError(error))),
  ]
  return [...new Set(statuses)].sort().map(String)
}

/** The operations of the document, by their names. */
async function documentedOperations({ rest }: Service): Promise<Map<string, DocumentedOperation>> {
  const { body } = await rest('GET', '/openapi.json')
  // document.once.test.ts checks the form of the document.
  const { paths } = body as { paths: Record<string, Record<string, DocumentedOperation>> }
  const documented = Object.values(paths).flatMap((item) => Object.values(item))
  return new Map(documented.map((operation) => [operation.operationId, operation]))
}

/** The statuses of the errors in the document, by operation. */
const documentedErrors = async (service: Service) =>
  new Map(
    [...(await documentedOperations(service))].map(([name, { responses }]) => [
      name,
      Object.keys(responses).filter((status) => Number(status) >= 400),
    ]),
  )

interface DocumentedOperation {
  operationId: string
  responses: Record<string, object>
}

test('the document has exactly the operations of the router', async () => {
  const names = operations.map(({ name }) => name)
  expect([...(await documentedErrors(service)).keys()].sort()).toEqual(names.sort())
})

test.each([
  ...operations.map((operation) => [operation.name, service, operation] as const),
  ...operationsIn(teamRouter).map((operation) => [operation.name, teams, operation] as const),
])('what the middlewares of %s throw', async (_, service, operation) => {
  const documented = (await documentedErrors(service)).get(operation.name)
  expect(documented).toEqual(expectedOf(operation))
  for (const { code, message, metBy } of operation.thrown) {
    const headers = { ...metBy.headers, ...(metBy.readOnlyKey && (await asReader(service))) }
    const answer = await send(service.rest, await operation.prepare(service.rest), { headers })
    expect(answer.body).toMatchObject({ code, message })
    const { responses } = (await documentedOperations(service)).get(operation.name) ?? {}
    expect(JSON.stringify(responses?.[answer.status])).toContain(JSON.stringify(message))
  }
})

test.each(operations)('$name', async (operation) => {
  const documented = (await documentedErrors(service)).get(operation.name) ?? []
  expect(documented).toEqual(expectedOf(operation))
  for (const status of documented.filter((status) => isMet(operation, status))) {
    const answer = await provoke[status]?.(operation)
    expect(answer).toMatchObject({ status: Number(status), body: { status: Number(status) } })
    if (status === '429' || status === '503') {
      expect(answer?.headers.get('retry-after')).toMatch(/^\d+$/)
    }
  }
})
