/** Both surfaces agree on the spellings of the API key. */
import { expect, test } from 'vitest'
import { ofTrpc } from '../support/outcome.ts'
import { serviceForFile, trpcClient } from '../support/service.ts'

const service = await serviceForFile()

const unknownKey = `petstore_${'A'.repeat(43)}`

/** The key with the case of each letter of its secret inverted. */
const inAnotherCase = (key: string) =>
  key.replaceAll(/(?<=_.*)[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )

const spellings: [title: string, header: (key: string) => string | undefined, valid: boolean][] = [
  ['Bearer', (key) => `Bearer ${key}`, true],
  ['bearer', (key) => `bearer ${key}`, true],
  ['BEARER', (key) => `BEARER ${key}`, true],
  ['two spaces', (key) => `Bearer  ${key}`, true],
  ['no header', () => undefined, false],
  ['empty', () => '', false],
  ['the scheme alone', () => 'Bearer', false],
  ['no scheme', (key) => key, false],
  ['no space', (key) => `Bearer${key}`, false],
  ['a tab', (key) => `Bearer\t${key}`, false],
  ['Basic', (key) => `Basic ${key}`, false],
  ['after another scheme', (key) => `Token Bearer ${key}`, false],
  ['quoted', (key) => `Bearer "${key}"`, false],
  ['two keys', (key) => `Bearer ${key}, Bearer ${key}`, false],
  ['one character too long', (key) => `Bearer ${key}A`, false],
  ['one character too short', (key) => `Bearer ${key.slice(0, -1)}`, false],
  ['upper case', (key) => `Bearer ${key.toUpperCase()}`, false],
  ['inverted case', (key) => `Bearer ${inAnotherCase(key)}`, false],
  ['unknown', () => `Bearer ${unknownKey}`, false],
  ['not the format of a key', () => 'Bearer abc.def~+/==', false],
  ['not ASCII', () => 'Bearer schlüssel', false],
]

test.each(spellings)('the key, %s', async (_, header, valid) => {
  const authorization = header(service.key)
  const answers = await Promise.all([
    service.rest('GET', '/pets', { headers: { authorization } }),
    service.rest('POST', '/pets', { headers: { authorization }, body: '{"name":"Rex",' }),
    service.rest('GET', '/pets/none', { headers: { authorization } }),
  ])
  expect(answers.map(({ status }) => status)).toEqual(valid ? [200, 400, 400] : [401, 401, 401])
  const seen: (string | null)[] = []
  const client = trpcClient(service.origin, '', async (url, { headers: _, ...init } = {}) => {
    const answer = await fetch(url, {
      ...init,
      ...(authorization !== undefined && { headers: { authorization } }),
    })
    seen.push(answer.headers.get('www-authenticate'))
    return answer
  })
  const trpc = await ofTrpc(client.listPets.query())
  if (valid) {
    expect(trpc).toEqual({ output: [] })
    expect(seen).toEqual([null])
    return
  }
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  for (const { headers, body } of answers) {
    expect(headers.get('www-authenticate')).toBe(challenge)
    expect(body).toEqual(trpc)
  }
  expect(trpc).toMatchObject({ code: 'UNAUTHORIZED', status: 401 })
  expect(seen).toEqual([challenge])
})
