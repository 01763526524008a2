/** The connection to the service: a client, and a cache of what it answered. */

import {
  type AppRouter,
  createPetstoreClient,
  isApiError,
  type PetstoreClient,
  queryKeyHashFn,
} from '@petstore-catalogue/petstore/client'
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { createTRPCContext } from '@trpc/tanstack-react-query'

/** Of the page's own origin, unless it is built for a service elsewhere. */
const url: string = import.meta.env.VITE_PETSTORE_URL ?? '/trpc'

/**
 * The read-only key with which visitors look at the animals; without one, they need their own. Every
 * visitor can read it.
 */
export const shopKey: string = import.meta.env.VITE_PETSTORE_KEY ?? ''

/** Milliseconds from one attempt to reach the service to the next. */
const RETRY_DELAY = 2000

export const { TRPCProvider, useTRPC } = createTRPCContext<AppRouter>()

export interface Connection {
  trpcClient: PetstoreClient
  queryClient: QueryClient
}

/** A connection with this API key; `onKeyRefused` is called when the service does not take it. */
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
        // Queries go on until the service is back; what they wait for is in `failureReason`.
        retry: (_failures, error) => isTemporary(error),
        retryDelay: RETRY_DELAY,
        staleTime: 10_000,
      },
    },
  })
  return { trpcClient: createPetstoreClient({ url, apiKey }), queryClient }
}

/** Whether the service takes this key. One that nobody can check now counts, until it is refused. */
export async function isTaken(apiKey: string): Promise<boolean> {
  try {
    await createPetstoreClient({ url, apiKey }).listPets.query({ limit: 1 })
    return true
  } catch (error) {
    return !isRefusal(error)
  }
}

const isRefusal = (error: unknown) => isApiError(error) && error.status === 401

/** Whether the same call may succeed later: the service is out of reach, busy or failing. */
export const isTemporary = (error: unknown): boolean =>
  !isApiError(error) || error.status >= 500 || error.status === 429

/** Whether the service lets this key add animals: one that may only read says so itself. */
export const mayAdd = (apiKey: string): boolean => !apiKey.startsWith('petstore_read_')
