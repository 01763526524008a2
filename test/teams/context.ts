/** What a team hands to its procedures, and its sign-in: a session's cookie before API keys, or a token in their place. */
import type { Authentication, CallerOf } from '../../src/procedure/authentication.ts'
import type { CallsOfRequest } from '../../src/procedure/call.ts'
import { resourcesOf } from '../support/procedures.ts'
import { teamRouter } from './router.ts'
import { userOf } from './tokens.ts'

/** The invitations that were sent. */
export const sent: string[] = []

export const createContext = ({ headers, caller }: CallsOfRequest) => ({
  userOf,
  language: headers.get('Accept-Language') ?? 'en',
  mailer: {
    /** Two of them never answer, one of which does not hear the signal either. */
    async send(to: string, signal: AbortSignal) {
      if (to === 'the deaf') await new Promise(() => {})
      if (to === 'nobody') {
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      }
      sent.push(`${caller.name} to ${to}`)
    },
  },
})

/** What the service of the team is made of. */
export const teamResources = { ...resourcesOf(teamRouter), createContext }

async function callerOf(token: string | undefined) {
  if (token === undefined) return undefined
  const { name, role } = await userOf(token)
  const caller = { name, holder: `user ${name}`, readOnly: role === 'reader', role }
  return { ...caller, keyId: 7n } // a claim with the name of a field of the service
}

export const bySession = {
  callerOf: ({ headers }) =>
    callerOf(/(?:^|; )session=([^;]*)/.exec(headers.get('Cookie') ?? '')?.[1]),
  besideApiKeys: true,
  message: 'Sign in first, or send an API key',
  challenge: 'Session realm="team"',
  scheme: {
    ...{ type: 'apiKey', in: 'cookie', name: 'session' },
    description: 'The session of a user who has signed in.',
  },
} satisfies Authentication

/** What the team adds to `ctx`. */
export type Added = Awaited<ReturnType<typeof createContext>>

/** What `ctx` of the team has, beside the fields of the service. */
export type Context = Added & { caller: CallerOf<typeof bySession> }

export const byToken: Authentication = {
  callerOf: ({ headers }) =>
    callerOf(/^Bearer (.+)$/i.exec(headers.get('Authorization') ?? '')?.[1]),
  besideApiKeys: false,
  message: 'Sign in first',
  challenge: 'Bearer realm="team"',
  scheme: {
    ...{ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    description: 'The token of a user who has signed in.',
  },
}
