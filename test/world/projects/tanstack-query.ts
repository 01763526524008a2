/** Runs the samples of client/README.md for TanStack Query, which stand beside this file, before a stand-in. */
import assert from 'node:assert/strict'
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import { persistQueryClientRestore, persistQueryClientSave } from '@tanstack/query-persist-client-core'
import { hydrate, QueryClient, QueryObserver, type QueryObserverOptions } from '@tanstack/react-query'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'

const stored = new Map<string, string>()
const localStorage = {
  getItem: (name: string) => stored.get(name),
  setItem: (name: string, value: string) => void stored.set(name, value),
  removeItem: (name: string) => void stored.delete(name),
}
Object.assign(globalThis, { window: { localStorage } })
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
server.use(count, http.all(`${url}/*`, () => HttpResponse.error()))
assert.equal(await callsUntilError(trpc.getPet.queryOptions({ petId: 1n })), 4)
server.resetHandlers()

const first = trpc.getPet.queryOptions({ petId: 1n })
const rex = await queryClient.fetchQuery(first)
assert.equal(rex.categoryId, 2n ** 63n - 1n)
await persistQueryClientSave({ queryClient, persister })
const { queryKeyHashFn } = queryClient.getDefaultOptions().queries ?? {}
const again = new QueryClient({ defaultOptions: { queries: { queryKeyHashFn } } })
await persistQueryClientRestore({ queryClient: again, persister })
assert.deepEqual(again.getQueryData(first.queryKey), rex)

const rendered = new QueryClient()
const { received, state } = await import('./rendered.ts')
hydrate(rendered, received)
console.log('as README says')
