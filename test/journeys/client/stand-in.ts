/** Runs the calls of calls.ts against the stand-in of the package in this process. */
import { createPetstoreClient } from '@petstore-catalogue/petstore/client'
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import { setupServer } from 'msw/node'
import { type Keys, outcomes } from './calls.ts'

const url = 'https://pets.example/trpc'

export async function standIn(keys: Keys): Promise<[string, string][]> {
  const apiKeys = [keys.valid, keys.readOnly]
  const server = setupServer(...petstoreHandlers({ url, apiKeys }))
  // A module makes its client before the test has the global fetch replaced.
  const early = createPetstoreClient({ url, apiKey: keys.valid })
  server.listen({ onUnhandledFrame: 'error' })
  try {
    await early.listPets.query()
    return await outcomes(url, keys)
  } finally {
    server.close()
  }
}
