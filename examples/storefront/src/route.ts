/** Which page is shown: the part of the address after `#`. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useEffect, useSyncExternalStore } from 'react'

export const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

/** A page, and the status by which the catalogue is filtered, on the way back to it, too. */
export type Route = { filter: PetStatus | undefined } & (
  | { page: 'catalogue' }
  | { page: 'pet'; id: bigint }
  | { page: 'add' }
  | { page: 'unknown' }
)

const withFilter = (path: string, filter: PetStatus | undefined) =>
  filter ? `${path}?status=${filter}` : path

export const links = {
  catalogue: (filter?: PetStatus) => withFilter('#/', filter),
  pet: (id: bigint, filter?: PetStatus) => withFilter(`#/pets/${id}`, filter),
  add: (filter?: PetStatus) => withFilter('#/add', filter),
}

/** Leads to the page of a link. */
export function go(link: string): void {
  location.hash = link
}

/** The route of the address as it is now, and when it changes. To be used once, for the whole page. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each address has a state of its own
  useEffect(() => {
    // A page begins at its top; on the way back to one, the browser scrolls to where one was.
    if (history.state === null) scrollTo(0, 0)
    history.replaceState('seen', '')
  }, [hash])
  return parse(hash)
}

function subscribe(onChange: () => void): () => void {
  addEventListener('popstate', onChange)
  return () => removeEventListener('popstate', onChange)
}

function parse(hash: string): Route {
  const [path = '', search] = hash.replace(/^#/, '').split('?')
  const wanted = new URLSearchParams(search).get('status')
  const filter = statuses.find((status) => status === wanted)
  if (path === '' || path === '/') return { page: 'catalogue', filter }
  if (path === '/add') return { page: 'add', filter }
  const digits = path.match(/^\/pets\/(\d+)$/)?.[1]
  const id = digits === undefined ? undefined : BigInt(digits)
  // Ids are int64: no animal can have a greater one.
  const isId = id !== undefined && BigInt.asIntN(64, id) === id
  return isId ? { page: 'pet', id, filter } : { page: 'unknown', filter }
}
