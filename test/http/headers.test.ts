/** CORS, and what the docs page loads. whole-answers.once.test.ts checks the headers of each response. */
import { describe, expect, test } from 'vitest'
import { serviceForFile, startService } from '../support/service.ts'

const shop = 'https://shop.example'

const service = await serviceForFile({ CORS_ORIGINS: `${shop}, http://localhost:5173` })

test('a conditional request for a resource gets the whole response', async () => {
  const conditional = await service.fetch('/v1/pets', { headers: { 'if-none-match': '*' } })
  expect(conditional.status).toBe(200)
})

describe('CORS', () => {
  test('without CORS_ORIGINS, responses have no CORS headers', async () => {
    const closed = await startService()
    for (const path of ['/v1/pets', '/trpc/listPets']) {
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { origin: shop, 'access-control-request-method': 'GET' }
        const answer = await closed.fetch(path, { method, headers })
        const names = [...answer.headers.keys()]
        expect(names.filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }
    await closed.stop()
  })

  test('other origins get no Access-Control-Allow-Origin', async () => {
    const others = [
      `${shop}.evil.example`,
      'https://evilshop.example',
      'http://shop.example',
      'null',
    ]
    for (const origin of [...others, `${shop}:444`, 'https://SHOP.example/', '*']) {
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { origin, 'access-control-request-method': 'GET' }
        const answer = await service.fetch('/v1/pets', { method, headers })
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
        // A cache must not return this response to the allowed origin.
        expect(answer.headers.get('vary')?.toLowerCase()).toContain('origin')
      }
    }
  })

  test('* in CORS_ORIGINS allows every origin', async () => {
    const all = await startService({ CORS_ORIGINS: `${shop}, *` })
    for (const path of ['/v1/pets', '/trpc/listPets', '/v1/nothing']) {
      const answer = await all.fetch(path, { headers: { origin: 'https://any.example' } })
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
    await all.stop()
  })
})
