/** Both surfaces agree on the spellings of the API key. */
import { expect, test } from 'vitest'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

const unknownKey = `petstore_${'A'.repeat(43)}`

/** The key with the case of each letter of its secret inverted. */
const inAnotherCase = (key: string) =>
  key.replaceAll(/(?<=_.*)[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )

const spellings: Record<string, (key: string) => string | undefined> = {
  'no header': () => undefined,
  empty: () => '',
  'the scheme alone': () => 'Bearer',
  'no scheme': (key) => key,
  'no space': (key) => `Bearer${key}`,
  'a tab': (key) => `Bearer\t${key}`,
  Basic: (key) => `Basic ${key}`,
  'after another scheme': (key) => `Token Bearer ${key}`,
  quoted: (key) => `Bearer "${key}"`,
  'two keys': (key) => `Bearer ${key}, Bearer ${key}`,
  'one character too long': (key) => `Bearer ${key}A`,
  'one character too short': (key) => `Bearer ${key.slice(0, -1)}`,
  'upper case': (key) => `Bearer ${key.toUpperCase()}`,
  'inverted case': (key) => `Bearer ${inAnotherCase(key)}`,
  unknown: () => `Bearer ${unknownKey}`,
  'not the format of a key': () => 'Bearer abc.def~+/==',
  'not ASCII': () => 'Bearer schlüssel',
}

const ask = async (authorization: string | undefined) => {
  const headers = { authorization }
  const rest = await Promise.all([
    service.rest('GET', '/pets', { headers }),
    service.rest('POST', '/pets', { headers, body: '{"name":"Rex",' }),
    service.rest('GET', '/pets/none', { headers }),
  ])
  const sent = authorization === undefined ? {} : { headers: { authorization } }
  return { rest, trpc: await fetch(`${service.origin}/trpc/listPets`, sent) }
}

test.each(['Bearer ', 'bearer ', 'BEARER ', 'Bearer  '])(
  'valid: "%s" before the key',
  async (scheme) => {
    const { rest, trpc } = await ask(scheme + service.key)
    expect(rest.map(({ status }) => status)).toEqual([200, 400, 400])
    expect([trpc.status, trpc.headers.get('www-authenticate')]).toEqual([200, null])
  },
)

test.each(Object.keys(spellings))('invalid: the key, %s', async (spelling) => {
  const authorization = spellings[spelling]?.(service.key)
  const { rest, trpc } = await ask(authorization)
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  for (const { status, headers } of [...rest, trpc]) {
    expect([status, headers.get('www-authenticate')]).toEqual([401, challenge])
  }
  const { error } = (await trpc.json()) as { error: string }
  const { message } = transformer.deserialize(error) as { message: string }
  for (const { body } of rest) expect(body).toEqual({ code: 'UNAUTHORIZED', message, status: 401 })
})
