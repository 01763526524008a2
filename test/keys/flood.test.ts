/** A flood of wrong keys: memory stays flat, the database is left alone, callers are served. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newKey } from '../../src/keys/format.ts'
import { createKey } from '../../src/keys/store.ts'
import { converse } from '../support/raw.ts'
import { type Service, startService } from '../support/service.ts'

const CONNECTIONS = 20

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

/** Requests sent at once on one connection: less than it may have unanswered. */
const BURST = 25

/** So many requests, each with another wrong key, as fast as connections take them. */
async function flood(count: number): Promise<void> {
  const bursts = count / CONNECTIONS / BURST
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let burst = 0; burst < bursts; burst++) {
        const requests = Array.from(
          { length: BURST },
          () => `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${newKey().key}\r\n\r\n`,
        )
        const { answers } = await converse(service.origin, requests.join(''), {
          expected: BURST,
          patience: 30_000,
        })
        expect(answers).toHaveLength(BURST)
        expect(answers.every(({ status }) => status === 401)).toBe(true)
      }
    }),
  )
}

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Bytes in use, without what the tests themselves keep of each request. */
function usedMemory(): number {
  service.logged.length = 0
  service.queries.length = 0
  collectGarbage()
  return process.memoryUsage().heapUsed
}

// 10,000 requests take a while; fewer would not show that nothing is kept of each.
test('10,000 distinct wrong keys are few queries, and nothing is kept of them', async () => {
  await flood(4_000) // what is made once, or compiled, is there
  const before = usedMemory()
  await flood(10_000)
  const lookUps = service.queries.filter(({ sql }) => /from .api_keys/.test(sql)).length
  expect(lookUps).toBeLessThan(1_000)
  // Of each a hash alone would be more than 100 bytes.
  expect(usedMemory() - before).toBeLessThan(10_000 * 80)
})

test('valid callers, and a key that is new, are served meanwhile', async () => {
  let isOver = false
  const flooded = flood(4_000).then(() => {
    isOver = true
  })
  let served = 0
  while (!isOver) {
    const fresh = await createKey(service.db, 'new')
    expect(await statusWith(fresh.key)).toBe(200)
    expect(await statusWith(service.key)).toBe(200)
    served++
  }
  await flooded
  expect(served).toBeGreaterThan(0)
})
