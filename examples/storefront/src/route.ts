/** Which page is shown: the part of the address after `#`. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useSyncExternalStore } from 'react'

export const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

export type Route =
  | { page: 'catalogue'; status: PetStatus | undefined }
  | { page: 'pet'; id: bigint }
  | { page: 'add' }
  | { page: 'unknown' }

export const links = {
  catalogue: (status?: PetStatus) => (status ? `#/?status=${status}` : '#/'),
  pet: (id: bigint) => `#/pets/${id}`,
  add: '#/add',
}

/** Leads to the page of a link. */
export function go(link: string): void {
  location.hash = link
}

/** The route of the address as it is now, and when it changes. */
export function useRoute(): Route {
  return parse(useSyncExternalStore(subscribe, () => location.hash))
}

function subscribe(onChange: () => void): () => void {
  addEventListener('popstate', onChange)
  return () => removeEventListener('popstate', onChange)
}

function parse(hash: string): Route {
  const [path = '', search] = hash.replace(/^#/, '').split('?')
  if (path === '' || path === '/') {
    const wanted = new URLSearchParams(search).get('status')
    return { page: 'catalogue', status: statuses.find((status) => status === wanted) }
  }
  if (path === '/add') return { page: 'add' }
  const id = path.match(/^\/pets\/(\d{1,18})$/)?.[1]
  return id === undefined ? { page: 'unknown' } : { page: 'pet', id: BigInt(id) }
}
