/** Which page is shown: the part of the address after `#`. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useEffect, useSyncExternalStore } from 'react'
import { categories } from './shop.ts'

export const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

/** Which animals the catalogue shows. The address contains it on every page, for the way back. */
export interface Filter {
  /** None for all. The service filters by it. */
  status: PetStatus | undefined
  /** A part of the name; empty for all. The page filters by this and by `kind`. */
  name: string
  /** A category; `other` for those without a name. */
  kind: bigint | 'other' | undefined
}

/** What a customer sees first: animals that can be had. */
export const atFirst: Filter = { status: 'available', name: '', kind: undefined }

export type Route = { filter: Filter } & (
  | { page: 'catalogue' }
  | { page: 'pet'; id: bigint }
  | { page: 'add' }
  | { page: 'staff' }
  | { page: 'unknown' }
)

function withFilter(path: string, { status, name, kind }: Filter): string {
  const search = new URLSearchParams()
  if (status !== atFirst.status) search.set('status', status ?? 'all')
  if (name !== '') search.set('name', name)
  if (kind !== undefined) search.set('kind', String(kind))
  return search.size > 0 ? `${path}?${search}` : path
}

export const links = {
  catalogue: (filter = atFirst) => withFilter('#/', filter),
  pet: (id: bigint, filter: Filter) => withFilter(`#/pets/${id}`, filter),
  add: (filter: Filter) => withFilter('#/add', filter),
  staff: (filter: Filter) => withFilter('#/staff', filter),
}

/** Leads to the page of a link. */
export function go(link: string): void {
  location.hash = link
}

/** Replaces the address by a link to the same page, without a step for the browser's Back. */
export function replace(link: string): void {
  history.replaceState('seen', '', link)
  dispatchEvent(new PopStateEvent('popstate'))
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
  const filter = parseFilter(new URLSearchParams(search))
  if (path === '' || path === '/') return { page: 'catalogue', filter }
  if (path === '/add') return { page: 'add', filter }
  if (path === '/staff') return { page: 'staff', filter }
  const digits = path.match(/^\/pets\/(\d+)$/)?.[1]
  const id = digits === undefined ? undefined : BigInt(digits)
  // Ids are int64: no animal can have a greater one.
  const isId = id !== undefined && BigInt.asIntN(64, id) === id
  return isId ? { page: 'pet', id, filter } : { page: 'unknown', filter }
}

function parseFilter(search: URLSearchParams): Filter {
  const [status, kind] = [search.get('status'), search.get('kind')]
  return {
    status:
      status === 'all' ? undefined : (statuses.find((one) => one === status) ?? atFirst.status),
    name: search.get('name') ?? '',
    kind: kind === 'other' ? kind : [...categories.keys()].find((id) => String(id) === kind),
  }
}
