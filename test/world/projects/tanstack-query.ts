/** Runs the samples of client/README.md for TanStack Query, which stand beside this file, before a stand-in. */
import assert from 'node:assert/strict'
import { isApiError, transformer } from '@petstore-catalogue/petstore/client'
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import type { QueryObserverOptions } from '@tanstack/react-query'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'

const stored = new Map<string, string>()
const localStorage = {
  getItem: (name: string) => stored.get(name),
  setItem: (name: string, value: string) => void stored.set(name, value),
  removeItem: (name: string) => void stored.delete(name),
}
// TanStack Query looks for a window when it is imported; without one it repeats nothing by default.
Object.assign(globalThis, { window: { localStorage } })
const { dehydrate, hydrate, MutationObserver, onlineManager, QueryClient, QueryObserver } =
  await import('@tanstack/react-query')
const { persistQueryClientRestore, persistQueryClientSave } = await import(
  '@tanstack/query-persist-client-core'
)
const { queryClient, trpc } = await import('./tanstack.ts')
const { persister } = await import('./persister.ts')
const { deserialize, serialize } = await import('./cache.ts')

const url = 'https://pets.example/trpc'
let calls = 0
const count = http.all(`${url}/*`, () => void calls++)
const pets = [{ name: 'Rex', categoryId: 2n ** 63n - 1n }]
const server = setupServer(count, ...petstoreHandlers({ url, pets }))
server.listen()

/** The number of calls until a query is an error. */
async function callsUntilError(options: unknown): Promise<number> {
  calls = 0
  const observed = { ...(options as QueryObserverOptions), retryDelay: 1 }
  const observer = new QueryObserver(queryClient, observed)
  await new Promise<void>((resolve) =>
    observer.subscribe(({ isError }) => {
      if (isError) resolve()
    }),
  )
  observer.destroy()
  return calls
}

assert.equal(await callsUntilError(trpc.getPet.queryOptions({ petId: 404n })), 1)
server.use(
  count,
  http.all(`${url}/*`, () => HttpResponse.error()),
)
assert.equal(await callsUntilError(trpc.getPet.queryOptions({ petId: 1n })), 4)

// A call beyond the rate limit is repeated when the service says, others after 1, 2 and 4 seconds.
const data = { code: 'TOO_MANY_REQUESTS', httpStatus: 429 }
const error = transformer.serialize({ code: -32029, message: 'Too many requests', data })
const limited = { status: 429, headers: { 'Retry-After': '42' } }
server.use(http.all(`${url}/*`, () => HttpResponse.json([{ error }], limited)))
const { queryKeyHashFn, retry, retryDelay } = queryClient.getDefaultOptions().queries ?? {}
assert(typeof retry === 'function' && typeof retryDelay === 'function')
const refused = { ...trpc.listPets.queryOptions(), retry: false }
const tooMany: unknown = await queryClient.fetchQuery(refused).catch((thrown: unknown) => thrown)
assert(isApiError(tooMany))
assert.deepEqual([retry(2, tooMany), retry(3, tooMany)], [true, false])
assert.deepEqual([retryDelay(0, tooMany), retryDelay(2, new Error())], [42_000, 4_000])

/** Mutations in a cache are removed by timers, which clear() does not end. */
const timeless = { gcTime: Infinity }
// A creation that failed once, and waits until the browser is online.
const addRex = { ...trpc.createPet.mutationOptions(), retry: 1, retryDelay: 1, ...timeless }
server.use(http.all(`${url}/*`, () => HttpResponse.error()))
const creation = new MutationObserver(queryClient, addRex)
await new Promise<void>((resolve) => {
  creation.subscribe(({ isPaused, failureCount }) => {
    if (failureCount > 0) onlineManager.setOnline(false)
    if (isPaused) resolve()
  })
  creation.mutate({ name: 'Rex', categoryId: 2n ** 53n + 1n }).catch(() => {})
})
server.resetHandlers()
onlineManager.setOnline(true)

const first = trpc.getPet.queryOptions({ petId: 1n })
const rex = await queryClient.fetchQuery(first)
assert.equal(rex.categoryId, 2n ** 63n - 1n)
await persistQueryClientSave({ queryClient, persister })
const defaultOptions = { queries: { queryKeyHashFn }, mutations: timeless }
const newClient = () => new QueryClient({ defaultOptions })
const restored = newClient()
await persistQueryClientRestore({ queryClient: restored, persister })
assert.deepEqual(restored.getQueryData(first.queryKey), rex)
const [paused] = restored.getMutationCache().getAll()
assert.deepEqual(paused?.state.variables, { name: 'Rex', categoryId: 2n ** 53n + 1n })
const { failureReason } = creation.getCurrentResult()
assert.deepEqual(paused.state.failureReason, new Error(failureReason?.message))

const rendered = newClient()
hydrate(rendered, deserialize(serialize(dehydrate(queryClient))))
assert.deepEqual(rendered.getQueryData(first.queryKey), rex)
for (const each of [queryClient, restored, rendered]) each.clear() // their timers run for minutes
console.log('as README says')
