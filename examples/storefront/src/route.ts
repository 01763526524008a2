/** The route of a page: the fragment of the URL. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useEffect, useSyncExternalStore } from 'react'
import { categories } from './shop.ts'

export const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

/** The filter of the catalogue. The URL of every page contains it, for links back. */
export interface Filter {
  /** Undefined for all. The service filters by it. */
  status: PetStatus | undefined
  /** A part of the name; empty for all. The page filters by this and by `kind`. */
  name: string
  /** A category; `other` for categories without a name. */
  kind: bigint | 'other' | undefined
}

/** The default filter: available animals. */
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

/** Navigates to a link. */
export function go(link: string): void {
  location.hash = link
}

/** Replaces the URL by a link to the same page, without a new entry in the history. */
export function replace(link: string): void {
  history.replaceState('seen', '', link)
  dispatchEvent(new PopStateEvent('popstate'))
}

/** The current route, updated with the URL. For one use, in the root component. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each address has a state of its own
  useEffect(() => {
    // A new page begins at its top; on Back, the browser restores the scroll position.
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
  // Ids are int64, so a greater one cannot exist.
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
