/** Responses and the log never contain API keys. */
import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { answerOf } from '../support/expect.ts'
import type { KeyedFetch } from '../support/rest.ts'
import { type Service, startService } from '../support/service.ts'

const ask = (service: Service, ...request: Parameters<KeyedFetch>) =>
  answerOf(service.fetch(...request))

test('no key is in the log, in a response or in the document, for each place where a client can send it', async () => {
  const service = await startService()
  onTestFinished(service.stop)
  const { key, origin, logged } = service
  const wrong = `${key.slice(0, -4)}AAAA`
  const answers = await Promise.all(
    [key, wrong].flatMap((sent) => [
      ask(service, '/v1/pets', { headers: { authorization: `Bearer ${sent}` } }),
      ask(service, '/v1/pets', { headers: { authorization: sent } }),
      ask(service, '/v1/pets', { headers: { 'x-request-id': sent } }),
      ask(service, '/v1/pets', { headers: { 'idempotency-key': sent } }),
      ask(service, `/v1/pets/${sent}`),
      ask(service, `/v1/pets?status=${sent}`),
      ask(service, `/v1/${sent}`),
      ask(service, `/v1/${sent.slice(0, 40)}?${sent.slice(40)}`),
      ask(service, `/${sent}?${sent}`),
      ask(service, `/${sent}/${key}/${sent}`),
      ask(service, `/v1/pets?status=${sent}&status=${key}`),
      ask(service, `/trpc/${sent}`),
      ask(service, `/trpc/${sent}`, { headers: { 'content-type': 'application/json' } }),
      ask(service, `/trpc/listPets?input=${sent}`),
      ask(service, `/trpc/listPets?connectionParams="${sent}"`),
      ask(service, '/trpc/createPet', { method: 'POST', body: JSON.stringify(sent) }),
      ask(service, '/v1/pets', { method: 'POST', headers: { 'content-type': sent }, body: '{}' }),
      ask(service, '/trpc/x', { method: 'POST', headers: { 'content-type': sent } }),
    ]),
  )
  const document = await (await fetch(`${origin}/v1/openapi.json`)).text()
  // A request is logged when it ends, which may be after its response.
  const requests = () => logged.filter((line) => JSON.parse(line).msg === 'request')
  await expect.poll(requests).toHaveLength(answers.length + 1)
  const published = [
    document,
    ...logged,
    ...answers.flatMap(({ body, headers }) => [body, JSON.stringify([...headers])]),
  ].join('\n')
  expect(answers.filter(({ status }) => status >= 500)).toEqual([])
  expect(answers.filter(({ status }) => status === 401).length).toBeGreaterThan(2)
  expect(published).not.toMatch(/petstore_[\w-]{20}/)
  expect(published).not.toContain(createHash('sha256').update(key).digest('hex'))
})

test('a failed lookup of a key does not log the key', async () => {
  const service = await startService()
  onTestFinished(service.stop)
  await service.sql('drop table api_keys')
  await ask(service, '/v1/pets')
  expect(service.logged.join()).toContain('api_keys')
  expect(service.logged.join()).not.toContain(service.key)
})
