/** The service, and the client's stand-in for it, as the tests of a resource need them. */
import type { TRPCClient } from '@trpc/client'
import type { AnyTRPCRouter } from '@trpc/server'
import type { HttpHandler } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, beforeAll } from 'vitest'
import { petstoreHandlers } from '../../client/src/testing.ts'
import type { AppRouter } from './router.ts'
import { resourcesOfService, serviceForFile, trpcClient } from './service.ts'

const ORIGIN = 'https://stand-in.example'

/** Returns a client of a stand-in for all tests of a file, of these handlers for a URL. */
export function standInOf<Served extends AnyTRPCRouter>(
  handlersAt: (url: string) => HttpHandler[],
): TRPCClient<Served> {
  const standIn = setupServer(...handlersAt(`${ORIGIN}/trpc`))
  beforeAll(() => standIn.listen({ onUnhandledFrame: 'bypass' }))
  afterAll(() => standIn.close())
  // The fetch at the time of the call, which MSW replaces.
  return trpcClient<Served>(ORIGIN, 'any', (...request) => fetch(...request))
}

/** Starts the service for all tests of a file; `client` calls it by tRPC, and `standIn` its stand-in. */
export async function serveBoth() {
  const service = await serviceForFile({}, { resources: resourcesOfService })
  const standIn = standInOf<AppRouter>((url) => petstoreHandlers({ url }))
  return { service, client: service.trpc, standIn }
}
