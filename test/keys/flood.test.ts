/** A flood of unknown keys: memory and queries stay bounded, and valid callers are served. */
import { createHash, randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, expect, test, vi } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { usedMemory } from '../support/memory.ts'
import { keys, serviceForFile } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { watchStatements } from '../support/statements.ts'

const CONNECTIONS = 500

/** Milliseconds that a valid key stays cached. */
const REMEMBERED = 10_000

const database = await newDatabase()
const statements = engine === 'mysql' ? await watchStatements(database.url) : undefined
afterAll(() => statements?.close())
const service = await serviceForFile({}, { database })

const unknownKey = () => `petstore_${randomBytes(32).toString('base64url')}`

/** Sends this many requests, each with another unknown key, as fast as the connections allow. */
async function flood(count: number): Promise<void> {
  const { port } = new URL(service.origin)
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(Number(port), '127.0.0.1')
      for (let sent = 0; sent < count / CONNECTIONS; sent++) {
        socket.write(
          `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${unknownKey()}\r\n\r\n`,
        )
        let text = ''
        // The body, a JSON object, ends the response.
        while (!text.endsWith('}')) text += await once(socket, 'data')
        expect(text).toMatch(/^HTTP\/1\.1 401/)
      }
      socket.destroy()
    }),
  )
}

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

// Fewer than 10,000 requests would not show a leak.
test.runIf(engine === 'mysql')('10,000 distinct unknown keys leave nothing in memory', async () => {
  await flood(4_000) // warms up caches and the compiler
  const before = usedMemory(service)
  await flood(10_000)
  // A hash of each key alone would take more than 100 bytes. The server may still close connections.
  await eventually(() => expect(usedMemory(service) - before).toBeLessThan(10_000 * 80))
})

// Queries to the embedded engine stay in the process and cannot be watched.
test.runIf(engine === 'mysql')(
  'a flood of unknown keys causes at most one query per 10 ms',
  async () => {
    const queries = async () => (await statements?.like(/^select .* from .api_keys/s))?.length ?? 0
    const before = await queries()
    const start = performance.now()
    await flood(2_000)
    const most = (performance.now() - start) / 9 + 2 // a timer may fire a millisecond early
    const sent = (await queries()) - before
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(Math.min(most, 500))
  },
)

test.runIf(engine === 'mysql')(
  'concurrent requests with an expired cache entry share look-ups, without unknown keys in them',
  async () => {
    const own = createHash('sha256').update(service.key).digest('hex')
    const ownQueries = async () =>
      (await statements?.like(/from .api_keys/))?.filter((text) => text.includes(own)) ?? []
    expect(await statusWith(service.key)).toBe(200)
    const before = (await ownQueries()).length
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + REMEMBERED)
    await using locker = await openSql(service.databaseUrl)
    let begun = 0
    const countRequest = () => void begun++
    subscribe('http.server.request.start', countRequest)
    try {
      // All requests arrive before the first response.
      await locker('lock tables api_keys write')
      const unknown = Array.from({ length: 300 }, () => statusWith(unknownKey()))
      const owners = Array.from({ length: 40 }, () => statusWith(service.key))
      await eventually(() => expect(begun).toBe(340))
      await locker('unlock tables')
      expect(new Set(await Promise.all(unknown))).toEqual(new Set([401]))
      expect(new Set(await Promise.all(owners))).toEqual(new Set([200]))
    } finally {
      unsubscribe('http.server.request.start', countRequest)
      vi.restoreAllMocks()
    }
    const sent = (await ownQueries()).slice(before)
    expect(sent.length).toBeGreaterThan(0)
    expect(sent.length).toBeLessThan(10)
    for (const text of sent) expect(text.match(/[\da-f]{64}/g)).toEqual([own])
  },
)

test('a flood does not keep valid callers and new keys from being served', {
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
