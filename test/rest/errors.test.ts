/** Every error that the document speaks of can be had, from each operation that it speaks of. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { readConfig } from '../../src/config.ts'
import { createService } from '../../src/service.ts'
import { engine } from '../support/database.ts'
import { type Answer, type RestClient, type RestInit, restClient } from '../support/rest.ts'
import { type Service, startService } from '../support/service.ts'

const unreachable =
  engine === 'mysql' ? 'mysql://root@127.0.0.1:1/petstore' : 'sqlite:/dev/null/petstore.db'

let service: Service
let limited: Service
let broken: Service
let cutOff: RestClient
const stops: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  service = await startService()
  limited = await startService({ rateLimit: 1 })
  await limited.rest('GET', '/pets')
  broken = await startService()
  await sql`alter table pets rename to animals`.execute(broken.db)
  stops.push(service.stop, limited.stop, broken.stop)
  cutOff = await serveUnreachable()
})
afterAll(() => Promise.all(stops.map((stop) => stop())))

/** A client for a service whose database cannot be reached. */
async function serveUnreachable(): Promise<RestClient> {
  const db = connect(unreachable)
  const config = readConfig({ DATABASE_URL: unreachable })
  const usage = { used: 0, waiting: 0 }
  const log = pino({ level: 'silent' })
  const { server, close } = createService({ config, db, usage, log })
  server.listen(0)
  await once(server, 'listening')
  stops.push(async () => {
    server.close().closeAllConnections()
    await close()
    await db.destroy()
  })
  return restClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, service.key)
}

/** The second of two creations under one key, while the first cannot go on. */
async function conflict(): Promise<Answer> {
  const create = () =>
    service.rest('POST', '/pets', { body, headers: { 'idempotency-key': '"running"' } })
  const waiting: Promise<Answer>[] = []
  const second = await service.db.transaction().execute(async (transaction) => {
    const row = { api_key_id: 1n, fingerprint: '', pet_id: 1n, created_at: 0n }
    await transaction
      .insertInto('idempotency_keys')
      .values({ ...row, key_hash: createHash('sha256').update('running').digest('hex') })
      .execute()
    waiting.push(create())
    await setTimeout(100)
    return await create()
  })
  await Promise.all(waiting)
  return second
}

type Call = (rest: RestClient, init?: RestInit) => ReturnType<RestClient>
const body = { name: 'Rex', categoryId: 3 }
const calls: Record<string, Call> = {
  listPets: (rest, init) => rest('GET', '/pets', init),
  createPet: (rest, init) => rest('POST', '/pets', { body, ...init }),
  getPet: (rest, init) => rest('GET', '/pets/1', init),
}

const everywhere = (call: Call) => ({
  401: () => call(service.rest, { headers: { authorization: undefined } }),
  429: () => call(limited.rest),
  500: () => call(broken.rest),
  503: () => call(cutOff),
})
const provoke: Record<string, Record<string, () => ReturnType<RestClient>>> = {
  listPets: {
    ...everywhere(calls.listPets as Call),
    400: () => service.rest('GET', '/pets?limit=0'),
  },
  createPet: {
    ...everywhere(calls.createPet as Call),
    400: () => service.rest('POST', '/pets', { body: {} }),
    409: conflict,
    422: async () => {
      const headers = { 'idempotency-key': '"used"' }
      await service.rest('POST', '/pets', { body, headers })
      return service.rest('POST', '/pets', { body: { ...body, name: 'Bella' }, headers })
    },
    413: () => service.rest('POST', '/pets', { body: ' '.repeat(70_000) }),
    415: () => service.rest('POST', '/pets', { body, headers: { 'content-type': 'text/json' } }),
  },
  getPet: {
    ...everywhere(calls.getPet as Call),
    400: () => service.rest('GET', '/pets/rex'),
    404: () => service.rest('GET', '/pets/404'),
  },
}

test.each(Object.keys(provoke))('%s', async (operationId) => {
  const { body } = await service.rest('GET', '/openapi.json')
  const operations: { operationId: string; responses: object }[] = Object.values(
    (body as { paths: Record<string, object> }).paths,
  ).flatMap((item) => Object.values(item))
  const { responses = {} } = operations.find((found) => found.operationId === operationId) ?? {}
  const documented = Object.keys(responses).filter((status) => Number(status) >= 400)
  expect(documented).toEqual(Object.keys(provoke[operationId] ?? {}).sort())
  for (const status of documented) {
    const answer = await provoke[operationId]?.[status]?.()
    expect(answer?.status).toBe(Number(status))
    if (status === '429') expect(answer?.headers.get('retry-after')).toMatch(/^\d+$/)
  }
})
