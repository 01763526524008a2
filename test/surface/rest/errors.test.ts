/** Each operation can return every error that the document lists for it: those of the service, of test/visits, and of test/teams. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { afterAll, expect, test } from 'vitest'
import { router } from '../../../src/procedure/procedure.ts'
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
import { keys, type Service, type Surroundings, serviceForFile } from '../../support/service.ts'
import { startUnreachable } from '../../support/unreachable.ts'
import { teamResources } from '../../teams/context.ts'
import { teamRouter } from '../../teams/router.ts'
import * as visits from '../../visits/router.ts'

/** The response to a request that does not arrive. Its operation is unknown. */
async function tooSlow({ origin }: Service): Promise<Answer> {
  const [{ answers } = { answers: [] }] = await unfinished(origin, [
    ['GET /v1/pets HTTP/1.1\r\nHost: x\r\n'],
  ])
  const { status, headers, body: text } = answers[0] as RawAnswer
  return { status, headers, text, body: JSON.parse(text) }
}

/** Operations, and services that serve them: one that works, one with a limit, and two that fail. */
async function serve(all: Operation[], tables: readonly string[], surroundings: Surroundings = {}) {
  const service = await serviceForFile({}, surroundings)
  const limited = await serviceForFile({ RATE_LIMIT: '1' }, surroundings)
  await limited.rest('GET', all.find(({ template }) => !template.includes('{'))?.template ?? '/')
  const broken = await serviceForFile({}, surroundings)
  for (const table of tables) await broken.sql(`drop table ${table}`)
  const unreachable = await startUnreachable(surroundings)
  afterAll(() => unreachable.stop())
  const late = await tooSlow(service)
  return { all, tables, service, limited, broken, unreachable, late }
}
type Api = Awaited<ReturnType<typeof serve>>
const ofVisits = { resources: visits.visitResources, prepare: visits.up }
const nested = router({ team: teamRouter })
const apis = {
  'the service': await serve(operations, tables),
  visits: await serve(operationsIn(visits.visitRouter), visits.tables, ofVisits),
  teams: await serve(operationsIn(nested), tables, {
    resources: { ...teamResources, router: nested },
  }),
}

/** Makes one of the calls of an operation; what it needs is created in `service`. */
const call = async (
  { service }: Api,
  operation: Operation,
  kind?: Kind,
  init?: RestInit,
  client: RestClient = service.rest,
) => send(client, await operation.prepare(service.rest, kind), init)

/** The response to a call while another call under the same key is blocked. */
async function conflict({ service, tables }: Api, operation: Operation): Promise<Answer> {
  const headers = { 'idempotency-key': `"running ${operation.name}"` }
  const good = await operation.prepare(service.rest)
  const letGo = await holdWrites(service.databaseUrl, tables)
  const calls = [send(service.rest, good, { headers }), send(service.rest, good, { headers })]
  const first = await Promise.race(calls).finally(letGo)
  await Promise.all(calls)
  return first
}

/** Whether `provoke` meets an error. */
function isMet(operation: Operation, status: string): boolean {
  const { takesIdempotencyKey, canBeInvalid, hasTable, isPublic } = operation
  if (status === '400') return canBeInvalid
  // A statement on the embedded engine blocks the whole process, so calls are never concurrent.
  // Without a key, 409 is of the resource, whose own test has it.
  if (status === '409') return takesIdempotencyKey && engine !== 'sqlite'
  if (status === '500') return hasTable
  // The database has the API keys, too.
  return status !== '503' || hasTable || !isPublic
}

/** The response to another call under a used key. */
async function reuse(api: Api, operation: Operation): Promise<Answer> {
  const headers = { 'idempotency-key': `"used ${operation.name}"` }
  const other = await call(api, operation, 'other', { headers })
  expect(other.status, other.text).toBeLessThan(300)
  return await call(api, operation, 'good', { headers })
}

async function asReader({ databaseUrl }: Service): Promise<NonNullable<RestInit['headers']>> {
  const { key } = await keys.create(databaseUrl, 'reader', undefined, true)
  return { authorization: `Bearer ${key}` }
}

const provoke: Record<string, (api: Api, operation: Operation) => Promise<Answer>> = {
  400: (api, operation) => call(api, operation, 'invalid'),
  401: (api, operation) => call(api, operation, 'good', { headers: { authorization: undefined } }),
  403: async (api, operation) =>
    call(api, operation, 'good', { headers: await asReader(api.service) }),
  404: (api, operation) => call(api, operation, 'missing'),
  408: async ({ late }) => late,
  409: conflict,
  413: (api, operation) => call(api, operation, 'good', { body: ' '.repeat(70_000) }),
  415: (api, operation) =>
    call(api, operation, 'good', { headers: { 'content-type': 'text/json' } }),
  422: reuse,
  429: async (api, operation) => {
    const limited = () => call(api, operation, 'good', {}, api.limited.rest)
    const first = await limited() // of a new minute, where the machine is slow
    return first.status === 429 ? first : await limited()
  },
  431: (api, operation) =>
    call(api, operation, 'good', { headers: { 'x-long': 'x'.repeat(20_000) } }),
  500: (api, operation) => call(api, operation, 'good', {}, api.broken.rest),
  503: (api, operation) => call(api, operation, 'good', {}, api.unreachable.rest),
}

/** The errors that the document must list for an operation, apart from those of its middlewares. */
const errorsOf = ({
  changes,
  hasBody,
  hasConflict,
  isPublic,
  namesOne,
  takesIdempotencyKey,
}: Operation) =>
  [
    ...[400, 408, 429, 431, 500, 503],
    ...(isPublic ? [] : [401]),
    ...(namesOne ? [404] : []),
    ...(takesIdempotencyKey || hasConflict ? [409] : []),
    ...(takesIdempotencyKey ? [422] : []),
    ...(changes && !isPublic ? [403] : []),
    ...(hasBody ? [413, 415] : []),
  ].map(String)

interface DocumentedOperation {
  operationId: string
  responses: Record<string, object>
}

/** The operations of the document. */
async function documentedOperations({ rest }: Service): Promise<DocumentedOperation[]> {
  const { body } = await rest('GET', '/openapi.json')
  // document.once.test.ts checks the form of the document.
  const { paths } = body as { paths: Record<string, Record<string, DocumentedOperation>> }
  return Object.values(paths).flatMap((item) => Object.values(item))
}

test.for(Object.entries(apis))(
  'the document of %s has exactly the operations of the router',
  async ([, { all, service }]) => {
    const documented = await documentedOperations(service)
    const names = documented.map(({ operationId }) => operationId)
    expect(names.sort()).toEqual(all.map(({ operationId }) => operationId).sort())
  },
)

const rows = Object.entries(apis).flatMap(([name, api]) =>
  api.all.map((operation) => [name, operation.name, api, operation] as const),
)
test.for(rows)(
  '%s: the document of %s has its errors, and those of its middlewares are met',
  async ([, , { service }, operation]) => {
    const documented = await documentedOperations(service)
    const { responses } = documented.find(
      ({ operationId }) => operationId === operation.operationId,
    ) as DocumentedOperation
    const { thrown } = operation
    const own = thrown.map((error) => String(getHTTPStatusCodeFromError(new TRPCError(error))))
    const statuses = Object.keys(responses).filter((status) => Number(status) >= 400)
    expect(statuses).toEqual([...new Set([...errorsOf(operation), ...own])].sort())
    for (const { code, message, metBy } of thrown) {
      const headers = { ...metBy.headers, ...(metBy.readOnlyKey && (await asReader(service))) }
      const answer = await send(service.rest, await operation.prepare(service.rest), { headers })
      expect(answer.body).toMatchObject({ code, message })
      expect(JSON.stringify(responses[answer.status])).toContain(JSON.stringify(message))
    }
  },
)

test.for(rows)('%s: %s', async ([, , api, operation]) => {
  for (const status of errorsOf(operation).filter((status) => isMet(operation, status))) {
    const answer = await provoke[status]?.(api, operation)
    expect(answer).toMatchObject({ status: Number(status), body: { status: Number(status) } })
    if (status === '429' || status === '503') {
      expect(answer?.headers.get('retry-after')).toMatch(/^\d+$/)
    }
  }
})
