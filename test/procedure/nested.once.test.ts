/** A router of routers: its procedures have dotted names everywhere but in the document and on REST. */
import { QueryClient } from '@tanstack/react-query'
import { createTRPCClient, httpBatchLink, httpBatchStreamLink, type TRPCClient } from '@trpc/client'
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query'
import { setupServer } from 'msw/node'
import { expect, onTestFinished, test } from 'vitest'
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { proceduresWith, router } from '../../src/procedure/procedure.ts'
import { petstoreLinks, queryKeyHashFn } from '../support/client.ts'
import { newMetrics } from '../support/metrics.ts'
import { resourcesOf } from '../support/procedures.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'

const { listPets: list, createPet: create, getPet: get } = petProcedures
// Those of two builders, as each resource has its own.
const [{ mergeRouters }, { router: another }] = [proceduresWith(), proceduresWith()]
const served = mergeRouters(
  router({ pets: { list, get } }),
  another({ back: { office: router({ create }) } }),
)

const metrics = await newMetrics()
const service = await serviceForFile(metrics.variables, { resources: resourcesOf(served) })

type Client = TRPCClient<typeof served>
const rex = { name: 'Rex', categoryId: 1n, status: 'available' } as const

/** Makes a pet twice with one key, and reads it; returns the results. */
async function visit({ pets, back }: Client) {
  const context = { idempotencyKey: 'one' }
  const made = await back.office.create.mutate(rex, { context })
  const again = await back.office.create.mutate(rex, { context })
  const [all, one] = await Promise.all([pets.list.query(), pets.get.query({ petId: made.id })])
  return [made, again, all, one]
}
const pet = { id: 1n, ...rex }

test('the client package, in batches, with a key, and its stand-in reach the same procedures', async () => {
  const clientOf = (url: string): Client => {
    // The links take any router; their type is that of the service's.
    const links = petstoreLinks({ url, apiKey: service.key, batchLink: httpBatchStreamLink })
    return createTRPCClient({ links: links as never })
  }
  expect(await visit(clientOf(`${service.origin}/trpc`))).toEqual([pet, pet, [pet], pet])
  const url = 'https://pets.example/trpc'
  const server = setupServer(...handlersOf(served, sharedInMemory([]), { url }))
  server.listen()
  onTestFinished(() => server.close())
  expect(await visit(clientOf(url))).toEqual([pet, pet, [pet], pet])
})

test('the proxy of TanStack Query reads them', async () => {
  const headers = { authorization: `Bearer ${service.key}` }
  const url = `${service.origin}/trpc`
  const client: Client = createTRPCClient({ links: [httpBatchLink({ url, transformer, headers })] })
  const queryClient = new QueryClient({ defaultOptions: { queries: { queryKeyHashFn } } })
  const proxy = createTRPCOptionsProxy<typeof served>({ client, queryClient })
  const options = proxy.pets.get.queryOptions({ petId: 1n })
  expect(options.queryKey[0]).toEqual(['pets', 'get'])
  expect(await queryClient.fetchQuery(options)).toMatchObject({ id: 1n })
})

test('log and metrics have dotted names, the document has names without dots', async () => {
  service.logged.length = 0
  for (const path of ['/v1/pets', '/trpc/pets.list', '/trpc/pets.list,pets%2Eget?batch=1'])
    await service.fetch(path)
  const lines = service.logged.map((line) => JSON.parse(line))
  expect(lines.map(({ operation, status }) => [operation, status])).toEqual([
    ['pets.list', 200],
    ['pets.list', 200],
    ['pets.list', 200],
    ['pets.get', 400],
  ])
  const labels = 'surface="rest",operation="pets.list",status="200"'
  expect(await metrics.read(`petstore_requests_total{${labels}}`)).toBe(1)
  const { body } = await service.rest('GET', '/openapi.json')
  const { paths } = body as { paths: Record<string, Record<string, { operationId: string }>> }
  const ids = Object.values(paths).flatMap((item) => Object.values(item))
  expect(ids.map(({ operationId }) => operationId)).toEqual([
    'petsList',
    'backOfficeCreate',
    'petsGet',
  ])
})
