/** Runs the samples of client/README.md for TanStack Query, which stand beside this file, before a stand-in. */
import assert from 'node:assert/strict'
import { transformer } from '@petstore-catalogue/petstore/client'
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
const { dehydrate, hydrate, QueryClient, QueryObserver } = await import('@tanstack/react-query')
const { persistQueryClientRestore, persistQueryClientSave } = await import(
  '@tanstack/query-persist-client-core'
)
const { queryClient, trpc } = await import('./tanstack.ts')
const { persister } = await import('./persister.ts')

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
server.resetHandlers()

const first = trpc.getPet.queryOptions({ petId: 1n })
const rex = await queryClient.fetchQuery(first)
assert.equal(rex.categoryId, 2n ** 63n - 1n)
await persistQueryClientSave({ queryClient, persister })
const { queryKeyHashFn } = queryClient.getDefaultOptions().queries ?? {}
const newClient = () => new QueryClient({ defaultOptions: { queries: { queryKeyHashFn } } })
const restored = newClient()
await persistQueryClientRestore({ queryClient: restored, persister })
assert.deepEqual(restored.getQueryData(first.queryKey), rex)

const rendered = newClient()
hydrate(rendered, transformer.deserialize(transformer.serialize(dehydrate(queryClient))))
assert.deepEqual(rendered.getQueryData(first.queryKey), rex)
for (const each of [queryClient, restored, rendered]) each.clear() // their timers run for minutes
console.log('as README says')
