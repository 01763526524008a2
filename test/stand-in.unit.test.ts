/** The stand-in for tests of frontends, as far as it needs no package: test/consumers has the rest. */
import { setupServer } from 'msw/node'
import { expect, test } from 'vitest'
import { petstoreHandlers } from '../client/src/testing.ts'
import { createPetstoreClient } from './support/client.ts'

test.each(['https://pets.example/trpc', 'https://pets.example/trpc/'])(
  'both client and stand-in may be given %s',
  async (url) => {
    const pets = [{ name: 'Rex', categoryId: 1 }]
    const server = setupServer(...petstoreHandlers({ url, pets }))
    server.listen()
    try {
      const client = createPetstoreClient({ url, apiKey: 'any' })
      expect(await client.listPets.query()).toMatchObject([{ id: 1n, name: 'Rex' }])
    } finally {
      server.close()
    }
  },
)
