/** The connection to the service: a client, and a cache of its responses. */

import {
  type AppRouter,
  createPetstoreClient,
  isApiError,
  type PetstoreClient,
  queryKeyHashFn,
} from '@petstore-catalogue/petstore/client'
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { createTRPCContext } from '@trpc/tanstack-react-query'

/** A path on the origin of the page, unless the build sets another URL. */
const url: string = import.meta.env.VITE_PETSTORE_URL ?? '/trpc'

/**
 * The read-only key for visitors; without it, they need their own. Every visitor can read this key, so
 * it must be read-only.
 */
export const shopKey: string = import.meta.env.VITE_PETSTORE_KEY ?? ''

/** Milliseconds between two attempts to reach the service. */
const RETRY_DELAY = 2000

/** Milliseconds after which a request without an answer has failed: the visitor is told, instead of waiting on. */
const TIMEOUT = 15_000

// Without a network, a call fails like any other. By default it would wait for one in silence, and an addition that
// was cancelled meanwhile would happen then.
const networkMode = 'always'

export const { TRPCProvider, useTRPC } = createTRPCContext<AppRouter>()

export interface Connection {
  trpcClient: PetstoreClient
  queryClient: QueryClient
}

/** Makes a connection with an API key. It calls `onKeyRefused` if the service rejects the key. */
export function connect(apiKey: string, onKeyRefused: () => void): Connection {
  const onError = (error: unknown) => {
    if (isRefusal(error)) onKeyRefused()
  }
  const queryClient = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        queryKeyHashFn,
        // Queries are repeated until the service is back; `failureReason` has the last error.
        retry: (_failures, error) => isTemporary(error),
        retryDelay: RETRY_DELAY,
        staleTime: 10_000,
        networkMode,
      },
      mutations: { networkMode },
    },
  })
  return { trpcClient: clientWith(apiKey), queryClient }
}

const clientWith = (apiKey: string) => createPetstoreClient({ url, apiKey, fetch: fetchInTime })

function fetchInTime(url: string, init: RequestInit): Promise<Response> {
  const timeout = AbortSignal.timeout(TIMEOUT)
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout
  return fetch(url, { ...init, signal })
}

/** Whether the service accepts this key. A key that cannot be checked now counts as valid. */
export async function isTaken(apiKey: string): Promise<boolean> {
  try {
    await clientWith(apiKey).listPets.query({ limit: 1 })
    return true
  } catch (error) {
    return !isRefusal(error)
  }
}

const isRefusal = (error: unknown) => isApiError(error) && error.status === 401

/** Whether the same call may succeed later: the service is unreachable, overloaded or failing. */
export const isTemporary = (error: unknown): boolean =>
  !isApiError(error) || error.status >= 500 || error.status === 429

/** Whether this key may add animals: the prefix of a key shows if it is read-only. */
export const mayAdd = (apiKey: string): boolean => !apiKey.startsWith('petstore_read_')
