/** Headers for browsers and caches: CORS, CSP, Cache-Control. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'

const shop = 'https://shop.example'

let service: Service
beforeAll(async () => {
  service = await startService({ CORS_ORIGINS: `${shop}, http://localhost:5173` })
})
afterAll(() => service.stop())

const ask = (path: string, init: RequestInit = {}, { origin, key } = service) =>
  fetch(origin + path, {
    ...init,
    redirect: 'manual',
    headers: { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) },
  })

const json = { 'content-type': 'application/json' }
/** Requests with a JSON response, by status or kind. */
const requests: Record<string, [path: string, init?: RequestInit]> = {
  200: ['/v1/pets'],
  201: ['/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":3}', headers: json }],
  400: ['/v1/pets?limit=0'],
  401: ['/v1/pets', { headers: { authorization: '' } }],
  404: ['/v1/pets/404'],
  405: ['/v1/pets', { method: 'DELETE' }],
  413: ['/v1/pets', { method: 'POST', body: 'x'.repeat(65_537), headers: json }],
  415: ['/v1/pets', { method: 'POST', body: 'x' }],
  'tRPC 200': ['/trpc/listPets'],
  'tRPC 401': ['/trpc/listPets', { headers: { authorization: '' } }],
  'tRPC 404': ['/trpc/nothing'],
  'tRPC 405': ['/trpc/listPets', { method: 'DELETE' }],
  'unknown path': ['/nothing'],
  document: ['/v1/openapi.json'],
  health: ['/healthz'],
}

test.for(Object.entries(requests))(
  'a JSON response can be neither executed nor framed: %s',
  async ([, [path, init]]) => {
    const { headers } = await ask(path, init)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'content-type': 'application/json',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': expect.stringMatching(/^max-age=\d{8,}/),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    for (const name of ['x-powered-by', 'server', 'etag', 'set-cookie']) {
      expect(headers.get(name)).toBeNull()
    }
  },
)

test('responses to requests that need a key have Cache-Control: no-store', async () => {
  for (const [name, [path, init]] of Object.entries(requests)) {
    if (['405', 'tRPC 405', 'unknown path', 'document', 'health'].includes(name)) continue
    expect((await ask(path, init)).headers.get('cache-control'), name).toBe('no-store')
  }
  const head = await ask('/v1/pets', { method: 'HEAD' })
  expect(head.headers.get('cache-control')).toBe('no-store')
  const conditional = await ask('/v1/pets', { headers: { 'if-none-match': '*' } })
  expect(conditional.status).toBe(200)
})

test('the docs page runs scripts of its own origin only', async () => {
  const page = await ask('/docs/', { headers: { authorization: '' } })
  expect(page.status).toBe(200)
  const policy = page.headers.get('content-security-policy')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self'")
  expect(policy).not.toMatch(/unsafe|https?:|\*/)
  const html = await page.text()
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|javascript:/i)
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link as string)
  expect(links.length).toBeGreaterThan(4)
  for (const link of links) {
    expect(link).not.toMatch(/^(\w+:|\/\/)/)
    const file = await fetch(new URL(link, `${service.origin}/docs/`))
    expect(file.status, link).toBe(200)
    expect(file.headers.get('x-content-type-options')).toBe('nosniff')
    expect(file.headers.get('cross-origin-resource-policy')).toBe('same-origin')
  }
  // Without the slash, relative URLs of the page would resolve to other paths.
  expect((await ask('/docs')).headers.get('location')).toBe('/docs/')
})

const exposed = [
  'Deprecation',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Sunset',
  'WWW-Authenticate',
  'X-Request-Id',
]

describe('CORS', () => {
  test('without CORS_ORIGINS, responses have no CORS headers', async () => {
    const closed = await startService()
    for (const path of ['/v1/pets', '/trpc/listPets']) {
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { origin: shop, 'access-control-request-method': 'GET' }
        const answer = await ask(path, { method, headers }, closed)
        const names = [...answer.headers.keys()]
        expect(names.filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }
    await closed.stop()
  })

  test.for(Object.entries(requests))(
    'a page of an allowed origin can read the response: %s',
    async ([name, [path, init]]) => {
      if (name === 'health') return // health checks are served before CORS
      const headers = { origin: shop, ...(init?.headers as Record<string, string>) }
      const answer = await ask(path, { ...init, headers })
      expect(answer.headers.get('access-control-allow-origin')).toBe(shop)
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      expect(answer.headers.get('vary')?.toLowerCase()).toContain('origin')
      const names = answer.headers.get('access-control-expose-headers')?.split(',')
      expect(names).toEqual(expect.arrayContaining(exposed))
    },
  )

  test('a preflight needs no key, on both surfaces', async () => {
    for (const path of ['/v1/pets', '/v1/pets/1', '/trpc/createPet', '/trpc/listPets?batch=1']) {
      const answer = await fetch(service.origin + path, {
        method: 'OPTIONS',
        headers: {
          origin: shop,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type',
        },
      })
      expect(answer.status).toBe(204)
      expect(await answer.text()).toBe('')
      expect(answer.headers.get('access-control-allow-origin')).toBe(shop)
      expect(answer.headers.get('access-control-allow-methods')?.split(',')).toEqual(
        expect.arrayContaining(['GET', 'HEAD', 'POST']),
      )
      expect(answer.headers.get('access-control-allow-headers')?.toLowerCase().split(',')).toEqual(
        expect.arrayContaining(['authorization', 'content-type', 'idempotency-key', 'trpc-accept']),
      )
      expect(Number(answer.headers.get('access-control-max-age'))).toBeGreaterThan(0)
    }
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
        const answer = await ask('/v1/pets', { method, headers })
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
        // A cache must not return this response to the allowed origin.
        expect(answer.headers.get('vary')?.toLowerCase()).toContain('origin')
      }
    }
  })

  test('CORS_ORIGINS=* allows every origin', async () => {
    const all = await startService({ CORS_ORIGINS: '*' })
    for (const path of ['/v1/pets', '/trpc/listPets', '/v1/nothing']) {
      const answer = await ask(path, { headers: { origin: 'https://any.example' } }, all)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
    await all.stop()
  })

  test('a page of an allowed origin can read 500 and 429', async () => {
    const limited = await startService({ CORS_ORIGINS: shop, RATE_LIMIT: '1' })
    const headers = { origin: shop }
    await ask('/v1/pets', { headers }, limited)
    for (const path of ['/v1/pets', '/trpc/listPets']) {
      const answer = await ask(path, { headers }, limited)
      expect(answer.status).toBe(429)
      expect(answer.headers.get('access-control-allow-origin')).toBe(shop)
      expect(answer.headers.get('access-control-expose-headers')).toContain('Retry-After')
    }
    await limited.stop()
    const broken = await startService({ CORS_ORIGINS: shop })
    await broken.sql('drop table pets')
    const answer = await ask('/v1/pets', { headers }, broken)
    expect(answer.status).toBe(500)
    expect(answer.headers.get('access-control-allow-origin')).toBe(shop)
    await broken.stop()
  })
})
