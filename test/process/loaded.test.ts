/** What a process that serves does not have in its memory: an HTTP client. */
import { expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { runServer } from '../support/process.ts'
import { createKey } from '../support/service.ts'

/** Tells the log, when the process ends, whether Node's own client was loaded. */
const tellAtExit = `process.once('exit', () => {
  const isLoaded = process.moduleLoadList.some((name) => name.includes('undici'))
  console.error(JSON.stringify({ msg: 'loaded', isLoaded }))
})`

test.each([
  ['a service that answers', '', false],
  ['one that asks others, so that this test notices', 'await fetch("data:,"); ', true],
])('%s', async (_, before, isLoaded) => {
  const database = await newDatabase()
  const key = await createKey(database.url)
  const server = await runServer({
    DATABASE_URL: database.url,
    METRICS_PORT: '0',
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(before + tellAtExit)}`,
  })
  try {
    for (const path of ['/v1/pets', '/trpc/listPets', '/readyz']) {
      const answer = await fetch(server.origin + path, {
        headers: { authorization: `Bearer ${key}` },
      })
      expect(answer.status).toBe(200)
    }
  } finally {
    server.child.kill('SIGTERM')
    await server.exited
    await database.remove()
  }
  expect(server.entries()).toContainEqual({ msg: 'loaded', isLoaded })
})
