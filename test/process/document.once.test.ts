/** The OpenAPI document and the docs page are built by the first request, not at the start. */
import { expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { runServer } from '../support/process.ts'
import { withHooks } from '../support/watched.ts'

/** Logs when trpc-to-openapi is loaded, and makes the first build of document and page fail. */
const hooks = withHooks(
  `
    if (specifier === 'trpc-to-openapi') writeSync(2, JSON.stringify({ msg: 'loaded' }) + '\\n')
    const isMaker = /(openapi\\/document|surface\\/docs)\\.ts$/.test(specifier)
    if (isMaker && !failed.has(specifier)) {
      failed.add(specifier)
      throw new Error('No file can be opened')
    }
    return next(specifier, context)`,
  'const failed = new Set()',
)

test('document and page are built on request, again after a failure, and once for concurrent requests', async () => {
  const database = await newDatabase()
  const server = await runServer({
    DATABASE_URL: database.url,
    ...hooks,
  })
  const ask = async (path: string) =>
    (await fetch(server.origin + path, { redirect: 'manual' })).status
  const entries = (text: string) => server.entries().filter(({ msg }) => msg === text)
  try {
    expect([await ask('/v1/pets'), await ask('/readyz'), await ask('/docs')]).toEqual([
      401, 200, 302,
    ])
    expect(entries('loaded')).toEqual([])
    for (const path of ['/v1/openapi.json', '/docs/']) {
      expect(await ask(path)).toBe(500)
      const many = Array.from({ length: 5 }, () => ask(path))
      expect(new Set(await Promise.all(many))).toEqual(new Set([200]))
    }
    await server.logged(/"path":"\/docs\/","status":200/)
    expect(entries('loaded')).toHaveLength(1)
    const causes = entries('Internal server error').map(({ err }) => err)
    expect(causes).toMatchObject([1, 2].map(() => ({ message: 'No file can be opened' })))
  } finally {
    await server.end('SIGTERM')
    await database.remove()
  }
})
