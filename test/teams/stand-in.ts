/** A stand-in of the team for browsers: other tokens, and no mailer. */
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import type { Added } from './context.ts'
import { teamRouter } from './router.ts'

export const context: Added = {
  userOf: async (token) => ({ name: token ?? 'Ann', role: 'editor' }),
  language: 'en',
  mailer: { async send() {} },
}

export const handlers = handlersOf(teamRouter, sharedInMemory([]), {
  url: 'https://team.example/trpc',
  createContext: () => context,
})
