/** A start that loses its database after the service listens. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { engine } from '../support/database.ts'
import { runServer } from '../support/process.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'

describe.runIf(engine === 'mysql')('a database server that fails at the end of a start', () => {
  let database: Awaited<ReturnType<typeof newProxiedDatabase>>
  let key: string
  beforeAll(async () => {
    database = await newProxiedDatabase()
    key = await createKey(database.url)
  })
  afterAll(async () => {
    await database?.proxy.cut()
    await database?.remove()
  })

  const isThereAnyKey = /^select `id` from `api_keys` limit/

  test.each([
    ['closes the connection', () => database.proxy.breakAt(isThereAnyKey, 'before')],
    ['does not answer', () => database.proxy.hangAt(isThereAnyKey)],
  ])('%s: the instance serves, and stops with 0', async (_name, fail) => {
    const failed = fail()
    const began = performance.now()
    const server = await runServer({ DATABASE_URL: database.url })
    await failed
    expect(performance.now() - began, 'it waits for two seconds').toBeLessThan(15_000)
    expect(server.stdout).toContain('created before; for a new one: npm run keys -- create NAME')
    expect((await keyedFetch(server.origin, key)('/v1/pets')).status).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
    expect(server.stderr).not.toContain('cut off')
  })
})
