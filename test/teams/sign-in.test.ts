/** A product with createContext, a sign-in of its own, a public procedure, and an effect outside the database. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Authentication } from '../../src/procedure/authentication.ts'
import { type Answer, facesOf, STAND_IN } from '../support/faces.ts'
import { serviceForFile, startService } from '../support/service.ts'
import { bySession, byToken, createContext, sent, teamResources } from './context.ts'
import { teamRouter, USER_TOKEN } from './router.ts'
import { tokenOf } from './tokens.ts'

const variables = { DATABASE_TIMEOUT: '1s', CORS_ORIGINS: 'https://team.example' }
const withSignIn = (authentication: Authentication) => ({
  resources: { ...teamResources, authentication },
})
const session = await serviceForFile(variables, withSignIn(bySession))
const token = await serviceForFile(variables, withSignIn(byToken))
const facesBySession = facesOf(teamRouter, session, { createContext, authentication: bySession })

const rex = { name: 'Rex', categoryId: 1 }
const origin = 'https://team.example'
const cookie = async (user: string, role: 'reader' | 'editor' = 'editor') => ({
  ...{ cookie: `theme=dark; session=${await tokenOf(user, role)}`, authorization: undefined },
  origin,
})
const nobody = { authorization: undefined }
beforeEach(() => {
  sent.length = 0
  session.logged.length = 0
})

describe.each(Object.entries(facesBySession))('%s', (name, face) => {
  test('anyone calls a public procedure, which has what createContext returns', async () => {
    const hours = (language: string): Answer => ({ output: { opens: '08:00', language } })
    const german = { ...nobody, 'Accept-Language': 'de' }
    expect(await face('getHours', {}, { headers: german })).toEqual(hours('de'))
    const wrongKey = { authorization: 'Bearer sesame', 'Accept-Language': 'fr' }
    expect(await face('getHours', {}, { headers: wrongKey })).toEqual(hours('fr'))
  })

  test('the caller is the user of the session, with the role, or the holder of an API key', async () => {
    const ann = { name: 'Ann', holder: 'user Ann', readOnly: false, role: 'editor' }
    expect(await face('getCaller', {}, { headers: await cookie('Ann') })).toEqual({ output: ann })
    const byKey = await face('getCaller', {})
    const key = name === 'the stand-in' ? 'stand-in' : 'test'
    expect(byKey).toEqual({
      output: { name: key, holder: expect.stringMatching(/^-?\d+$/), readOnly: false },
    })
  })

  test('without a session, with an invalid one, and with one that may only read', async () => {
    const missing = ['UNAUTHORIZED', 401, 'Sign in first, or send an API key']
    expect(await face('getCaller', {}, { headers: nobody })).toEqual(missing)
    const invalid = ['UNAUTHORIZED', 401, 'The token of the user is missing or invalid']
    const headers = { ...nobody, cookie: 'session=sesame' }
    expect(await face('getCaller', {}, { headers })).toEqual(invalid)
    // What the authenticator passes on, and is no API key
    const token = { authorization: 'Bearer sesame' }
    if (name !== 'the stand-in')
      expect(await face('getCaller', {}, { headers: token })).toEqual(missing)
    const key = { authorization: `Bearer petstore_${'x'.repeat(43)}` }
    if (name !== 'the stand-in')
      expect(await face('getCaller', {}, { headers: key })).toEqual([
        ...['UNAUTHORIZED', 401, expect.stringContaining('The API key is invalid')],
      ])
    const readOnly = ['FORBIDDEN', 403, 'You may only read: this call changes something']
    expect(await face('invite', { to: 'Eve' }, { headers: await cookie('Bob', 'reader') })).toEqual(
      readOnly,
    )
    expect(sent).toEqual([])
  })

  test('a mutation has its effect elsewhere, once', async () => {
    const answer = await face('invite', { to: 'Eve' }, { headers: await cookie('Ann') })
    expect([answer, sent]).toEqual([{ output: { to: 'Eve' } }, ['Ann to Eve']])
  })

  if (name === 'JSON lines') return // a batch has no Idempotency-Key
  test('each holder has its own Idempotency-Keys, and so has each user behind one', async () => {
    const add = async (
      headers: Record<string, string | undefined>,
      by: 'addOwnAnimal' | 'addAnimal' = 'addOwnAnimal',
    ) => {
      const answer = await face(by, rex, {
        headers: { ...headers, 'Idempotency-Key': `"${name} ${by}"` },
      })
      return 'output' in answer ? (answer.output as { id: number }).id : answer
    }
    const addFor = async (user: string) =>
      add({ ...(await cookie('Ann')), [USER_TOKEN]: await tokenOf(user, 'editor') }, 'addAnimal')
    const addAll = async () => [
      ...[await add(await cookie('Ann')), await add(await cookie('Bob')), await add({})],
      // Two users behind one holder.
      ...[await addFor('Eve'), await addFor('Bob')],
    ]
    const ids = await addAll()
    expect(new Set(ids).size).toBe(5)
    expect(await addAll()).toEqual(ids)
  })
})

test('401 names the scheme of the sign-in, and the log its holder', async () => {
  const challenge = async (service: typeof session, headers = {}) => {
    const { status, headers: answered } = await service.fetch('/v1/caller', {
      headers: { ...nobody, ...headers },
    })
    return [status, answered.get('www-authenticate')]
  }
  expect(await challenge(session)).toEqual([401, 'Session realm="team", Bearer'])
  expect(await challenge(token)).toEqual([401, 'Bearer realm="team"'])
  expect(await challenge(token, { authorization: `Bearer ${token.key}` })).toEqual([
    401,
    'Bearer realm="team"',
  ])
  const ann = `Bearer ${await tokenOf('Ann', 'editor')}`
  expect(await challenge(token, { authorization: ann })).toEqual([200, null])
  const of = (status: number) => expect.stringMatching(new RegExp(`"status":${status}.*`))
  await expect.poll(() => token.logged).toContainEqual(of(200))
  const line = JSON.parse(token.logged.find((text) => text.includes('"status":200')) ?? '')
  expect(line).toMatchObject({ holder: 'user Ann' })
  expect(line).not.toHaveProperty('address')
})

test('with a cookie, a mutation needs the Origin of a page that may call, and a query none', async () => {
  const { origin: _, ...headers } = await cookie('Ann')
  const from = async (sender: string | undefined, method = 'POST') => {
    const all = { ...headers, origin: sender }
    const init =
      method === 'GET' ? { headers: all } : { method, headers: all, body: '{"to":"Eve"}' }
    return (await session.fetch(method === 'GET' ? '/v1/caller' : '/v1/invitations', init)).status
  }
  const origins = [
    undefined,
    'null',
    '*',
    'https://evil.example',
    origin,
    'https://petstore.example',
  ]
  const statuses = []
  for (const sender of origins) statuses.push(await from(sender))
  expect(statuses).toEqual([403, 403, 403, 403, 200, 200])
  expect([await from(undefined, 'GET'), sent.length]).toEqual([200, 2])
  const byKey = { method: 'POST', body: '{"to":"Eve"}' }
  expect((await session.fetch('/v1/invitations', byKey)).status).toBe(200)
})

test('pages of named origins may send the cookie, where there is one', async () => {
  const { fetch, stop } = await startService({ CORS_ORIGINS: '*' }, withSignIn(bySession))
  onTestFinished(stop)
  const allowed = async (send: typeof fetch) =>
    (await send('/v1/hours', { headers: { origin } })).headers.get(
      'access-control-allow-credentials',
    )
  expect([await allowed(session.fetch), await allowed(token.fetch), await allowed(fetch)]).toEqual([
    'true',
    null,
    null,
  ])
})

test('a batch with one procedure that is not public needs a caller', async () => {
  const batch = (names: string) =>
    session.fetch(`/trpc/${names}?batch=1&input=${encodeURIComponent('{"0":"[{}]","1":"[{}]"}')}`, {
      headers: nobody,
    })
  expect((await batch('getHours,getHours')).status).toBe(200)
  expect((await batch('getHours,getCaller')).status).toBe(401)
  expect((await batch('getHours,nothing')).status).toBe(401)
})

test('a public procedure has the same caller beside others in a batch, and alone', async () => {
  const input = encodeURIComponent('{"0":"[{}]","1":"[{}]"}')
  const { cookie: sent } = await cookie('Ann')
  for (const url of [`${session.origin}/trpc`, STAND_IN]) {
    const answer = await fetch(`${url}/getVisitor,getCaller?batch=1&input=${input}`, {
      headers: { cookie: sent },
    })
    expect(await answer.json()).toEqual([
      { result: { data: expect.stringContaining('"anyone"') } },
      { result: { data: expect.stringContaining('"Ann"') } },
    ])
  }
})

test('each holder has a rate, and public procedures that of the address', async () => {
  const { fetch, stop } = await startService({ RATE_LIMIT: '2' }, withSignIn(bySession))
  onTestFinished(stop)
  const left = async (path: string, headers: Record<string, string | undefined>) => {
    const answer = await fetch(path, { headers })
    return /r=(\d)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]
  }
  const ann = await cookie('Ann')
  expect([await left('/v1/caller', ann), await left('/v1/caller', ann)]).toEqual(['1', '0'])
  expect((await fetch('/v1/caller', { headers: ann })).status).toBe(429)
  expect(await left('/v1/caller', await cookie('Bob'))).toBe('1')
  expect(await left('/v1/caller', {})).toBe('1') // by the API key
  expect([await left('/v1/hours', nobody), await left('/v1/hours', ann)]).toEqual(['1', '0'])
  expect((await fetch('/v1/hours', { headers: nobody })).status).toBe(429)
})

test('the document has the scheme of the sign-in, and no security of a public procedure', async () => {
  const document = async ({ rest }: typeof session) => (await rest('GET', '/openapi.json')).body
  expect(await document(session)).toMatchObject({
    components: { securitySchemes: { signIn: bySession.scheme, apiKey: { scheme: 'bearer' } } },
    paths: {
      '/hours': {
        get: { security: [], responses: expect.not.objectContaining({ 401: expect.anything() }) },
      },
      '/caller': { get: { security: [{ signIn: [] }, { apiKey: [] }] } },
    },
  })
  const page = await session.fetch('/docs/')
  expect(await page.text()).toContain('The session of a user who has signed in.')
  expect(await document(token)).toMatchObject({
    paths: { '/caller': { get: { security: [{ signIn: [] }] } } },
  })
})

const late = ['SERVICE_UNAVAILABLE', 503, 'The service could not answer in time; try again later']

test.each(['nobody', 'the deaf'])(
  'at the deadline a mutation without a transaction is answered: %s',
  async (to) => {
    expect(await facesBySession.rest('invite', { to })).toEqual(late)
    expect(sent).toEqual([])
  },
)

test.each([
  ['callerOf', () => new Promise<never>(() => {}), late, 'The service could not answer'],
  ['createContext', () => new Promise<never>(() => {}), late, 'The service could not answer'],
  [
    'createContext',
    () => ({ stores: {} }),
    ['INTERNAL_SERVER_ERROR', 500, 'Internal server error'],
    'createContext returns stores, which is a field of the service',
  ],
  [
    'createContext',
    () => null as never,
    ['INTERNAL_SERVER_ERROR', 500, 'Internal server error'],
    'createContext returns null: it must return an object',
  ],
])('%s that hangs, or returns what it must not', async (name, wrong, expected, line) => {
  const authentication =
    name === 'callerOf' ? { ...bySession, callerOf: wrong as never } : bySession
  const service = await startService(variables, {
    resources: {
      ...teamResources,
      authentication,
      createContext: name === 'createContext' ? wrong : createContext,
    },
  })
  onTestFinished(service.stop)
  const answer = await service.fetch('/v1/caller')
  const { code, status, message } = (await answer.json()) as Record<string, unknown>
  expect([code, status, message]).toEqual(expected)
  expect(service.logged.join()).toContain(line)
})
