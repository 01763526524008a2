/** A flood of wrong keys: memory stays flat, the database is left alone, callers are served. */
import { createHash, randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { usedMemory } from '../support/memory.ts'
import { keys, type Service, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const CONNECTIONS = 500

/** Milliseconds that a valid key is remembered. */
const REMEMBERED = 10_000

let service: Service
let statements: Statements | undefined
beforeAll(async () => {
  const database = await newDatabase()
  if (engine === 'mysql') statements = await watchStatements(database.url)
  service = await startService({}, { database })
})
afterAll(async () => {
  await service.stop()
  await statements?.close()
})

/** A key that nobody made. */
const wrongKey = () => `petstore_${randomBytes(32).toString('base64url')}`

/** So many requests, each with another wrong key, as fast as connections take them. */
async function flood(count: number): Promise<void> {
  const { port } = new URL(service.origin)
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(Number(port), '127.0.0.1')
      for (let sent = 0; sent < count / CONNECTIONS; sent++) {
        socket.write(
          `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${wrongKey()}\r\n\r\n`,
        )
        let text = ''
        // An answer ends with its body, which is JSON.
        while (!text.endsWith('}')) text += await once(socket, 'data')
        expect(text).toMatch(/^HTTP\/1\.1 401/)
      }
      socket.destroy()
    }),
  )
}

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

// 10,000 requests take a while; fewer would not show that nothing is kept of each.
test.runIf(engine === 'mysql')('of 10,000 distinct wrong keys nothing is kept', async () => {
  await flood(4_000) // what is made once, or compiled, is there
  const before = usedMemory(service)
  await flood(10_000)
  // Of each a hash alone would be more than 100 bytes.
  expect(usedMemory(service) - before).toBeLessThan(10_000 * 80)
})

// What the embedded engine is asked stays in this process, where nobody sees it.
test.runIf(engine === 'mysql')(
  'a flood of wrong keys makes queries larger, not more: one in 10 ms at most',
  async () => {
    const queries = async () => (await statements?.like(/^select .* from .api_keys/s))?.length ?? 0
    const before = await queries()
    const start = performance.now()
    await flood(2_000)
    const most = (performance.now() - start) / 9 + 2 // a timer may be early by a millisecond
    const asked = (await queries()) - before
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThan(Math.min(most, 500))
  },
)

test.runIf(engine === 'mysql')(
  'a key that was valid is asked for once for all who bring it, and not among strangers',
  async () => {
    const own = createHash('sha256').update(service.key).digest('hex')
    const mine = async () =>
      (await statements?.like(/from .api_keys/))?.filter((text) => text.includes(own)) ?? []
    expect(await statusWith(service.key)).toBe(200)
    const before = (await mine()).length
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + REMEMBERED)
    await using locker = await openSql(service.databaseUrl)
    let begun = 0
    const hear = () => void begun++
    subscribe('http.server.request.start', hear)
    try {
      // All are there before the first is answered.
      await locker('lock tables api_keys write')
      const strangers = Array.from({ length: 300 }, () => statusWith(wrongKey()))
      const owners = Array.from({ length: 40 }, () => statusWith(service.key))
      await eventually(() => expect(begun).toBe(340))
      await locker('unlock tables')
      expect(new Set(await Promise.all(strangers))).toEqual(new Set([401]))
      expect(new Set(await Promise.all(owners))).toEqual(new Set([200]))
    } finally {
      unsubscribe('http.server.request.start', hear)
      vi.restoreAllMocks()
    }
    const asked = (await mine()).slice(before)
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.length).toBeLessThan(10)
    for (const text of asked) expect(text.match(/[\da-f]{64}/g)).toEqual([own])
  },
)

test('valid callers, and a key that is new, are served meanwhile', {
  timeout: 120_000,
}, async () => {
  let isOver = false
  const flooded = flood(4_000).then(() => {
    isOver = true
  })
  let served = 0
  while (!isOver) {
    const fresh = await keys.create(service.databaseUrl, 'new')
    expect(await statusWith(fresh.key)).toBe(200)
    expect(await statusWith(service.key)).toBe(200)
    served++
  }
  await flooded
  expect(served).toBeGreaterThan(0)
})
