/** The service, and the client's stand-in for it, as the tests of a resource need them. */
import type { TRPCClient } from '@trpc/client'
import type { AnyTRPCRouter } from '@trpc/server'
import { setupServer } from 'msw/node'
import { afterAll, beforeAll } from 'vitest'
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import type { Shared } from '../../src/procedure/call.ts'
import { serviceForFile, trpcClient } from './service.ts'

const ORIGIN = 'https://stand-in.example'

/** Returns a client of a stand-in for all tests of a file: of a router with stores in memory. */
export function standInOf<Served extends AnyTRPCRouter>(
  router: Served,
  shared: Shared,
): TRPCClient<Served> {
  const standIn = setupServer(
    ...handlersOf<AnyTRPCRouter>(router, shared, { url: `${ORIGIN}/trpc` }),
  )
  beforeAll(() => standIn.listen({ onUnhandledFrame: 'bypass' }))
  afterAll(() => standIn.close())
  // The fetch at the time of the call, which MSW replaces.
  return trpcClient<Served>(ORIGIN, 'any', (...request) => fetch(...request))
}

/** Starts the service for all tests of a file; `client` calls it by tRPC, and `standIn` its stand-in. */
export async function serveBoth() {
  const service = await serviceForFile()
  return { service, client: service.trpc, standIn: standInOf(appRouter, sharedInMemory([])) }
}
