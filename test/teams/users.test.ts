/** Users behind the API key of a frontend: their rights, their Idempotency-Keys, and their token, which no log has. */
import { describe, expect, test } from 'vitest'
import { type Answer, facesOf } from '../support/faces.ts'
import { serviceForFile } from '../support/service.ts'
import { createContext, teamResources } from './context.ts'
import { teamRouter, USER_TOKEN } from './router.ts'
import { tokenOf } from './tokens.ts'

const service = await serviceForFile(
  { CORS_ORIGINS: 'https://team.example' },
  { resources: teamResources },
)
const { 'JSON lines': lines, ...faces } = facesOf(teamRouter, service, { createContext })
const rex = { name: 'Rex', categoryId: 1 }
const by = async (
  user: string,
  role: 'reader' | 'editor' = 'editor',
  key?: string,
  team = 'red',
) => ({
  headers: {
    [USER_TOKEN]: await tokenOf(user, role),
    'X-Team': team,
    ...(key !== undefined && { 'Idempotency-Key': JSON.stringify(key) }),
  },
})
const idOf = (answer: Answer) =>
  'output' in answer ? (answer.output as { id: number }).id : answer

describe.each(Object.entries({ ...faces, 'JSON lines': lines }))('%s', (name, face) => {
  test('a user has the rights of the token', async () => {
    const noUser = ['UNAUTHORIZED', 401, 'The token of the user is missing or invalid']
    const noEditor = ['FORBIDDEN', 403, 'Only editors of the team may change something']
    expect(await face('getMe', {})).toEqual(noUser)
    const expired = { [USER_TOKEN]: await tokenOf('Ann', 'editor', '-1h') }
    expect(await face('getMe', {}, { headers: expired })).toEqual(noUser)
    expect(await face('addAnimal', rex, await by('Bob', 'reader'))).toEqual(noEditor)
    expect(idOf(await face('addAnimal', rex, await by('Ann')))).toBeTypeOf('number')
  })

  test('ctx has the name of the API key, and the headers but for the key', async () => {
    const { headers } = await by('Ann', 'reader')
    const frontend = name === 'the stand-in' ? 'stand-in' : 'test'
    const answer = await face('getMe', {}, { headers })
    expect(answer).toEqual({ output: { user: 'Ann', frontend, key: null } })
  })
})

test.each(Object.entries(faces))(
  'two users behind one API key never share an Idempotency-Key: %s',
  async (name, face) => {
    const add = async (user: string, key: string, body = rex, team = 'red') =>
      idOf(await face('addAnimal', body, await by(user, 'editor', `${name} ${key}`, team)))
    const first = await add('Ann', 'one')
    expect(await add('Ann', 'one')).toBe(first)
    const others = [
      ...[await add('Bob', 'one'), await add('', 'one'), await add('Ann', 'two')],
      // Behind the key, these would be the text of another pair.
      ...[await add('one', 'Ann'), await add('Ann"', 'one'), await add('\ud800', 'one')],
      ...[await add('\ud801', 'one'), await add('Ann', `one\\u0000"Ann"`)],
      await add('Ann', 'one', rex, 'blue'),
      // Beside each other, these would be the same text.
      ...[await add('B C', 'one', rex, 'A'), await add('C', 'one', rex, 'A B')],
    ]
    expect(new Set([first, ...others]).size).toBe(1 + others.length)
    expect(await add('Ann', 'one', { ...rex, name: 'Ada' })).toEqual([
      'UNPROCESSABLE_CONTENT',
      422,
      expect.any(String),
    ])
  },
)

test('the token of a user is never in the log, and pages may send what middlewares read', async () => {
  const { headers } = await by('Ann')
  service.logged.length = 0
  await service.sql('drop table pets')
  const answer = await faces.rest('addAnimal', rex, { headers })
  expect(answer).toEqual(['INTERNAL_SERVER_ERROR', 500, 'Internal server error'])
  await faces.rest('getMe', {}, { headers: { [USER_TOKEN]: 'sesame' } })
  await expect
    .poll(() => service.logged.filter((line) => line.includes('"request"')).length)
    .toBeGreaterThanOrEqual(2)
  expect(service.logged.join()).not.toMatch(new RegExp(`sesame|${headers[USER_TOKEN]}`))
  const preflight = await fetch(`${service.origin}/v1/me`, {
    method: 'OPTIONS',
    headers: { origin: 'https://team.example', 'access-control-request-method': 'GET' },
  })
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(',')
  expect(allowed).toEqual(expect.arrayContaining([USER_TOKEN, 'X-Team', 'Authorization']))
})

test('the document has the headers, and an example of each error', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  const { paths } = body as { paths: Record<string, Record<string, unknown>> }
  expect(paths['/animals']?.post).toMatchObject({
    parameters: [
      { in: 'header', name: USER_TOKEN, required: true, example: expect.any(String) },
      { in: 'header', name: 'X-Team', required: false, example: 'red' },
      { name: 'Idempotency-Key' },
    ],
    responses: {
      403: {
        description: 'The API key may only read. The user is no editor',
        content: {
          'application/json': {
            examples: {
              FORBIDDEN: { value: { message: expect.stringContaining('may only read') } },
              FORBIDDEN_2: { value: { message: 'Only editors of the team may change something' } },
            },
          },
        },
      },
    },
  })
})
