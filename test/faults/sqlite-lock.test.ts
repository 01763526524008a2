/** A write lock of another process on the embedded database, longer than DATABASE_TIMEOUT. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startInstance, until } from '../support/instance.ts'
import { openSql } from '../support/sql.ts'

/** Milliseconds that the lock is held, and DATABASE_TIMEOUT. */
const HELD = 8_000
const TIMEOUT = 5_000

/** Milliseconds that a response may take that needs no lock. */
const PROMPT = 100

interface Timed {
  status: number
  began: number
  took: number
}

test('reads and health checks succeed meanwhile, creations return 503 at their deadline', {
  retry: 2,
}, async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: `${TIMEOUT}ms` })
  const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' }
  let serial = 0
  const timed = async (path: string, init: RequestInit = {}): Promise<Timed> => {
    const began = performance.now()
    const answer = await fetch(service.origin + path, { headers, ...init })
    await answer.text()
    return { status: answer.status, began, took: performance.now() - began }
  }
  const create = () =>
    timed('/v1/pets', {
      method: 'POST',
      body: '{"name":"Rex","categoryId":3}',
      // Every other creation has an Idempotency-Key.
      headers: { ...headers, ...(++serial % 2 && { 'idempotency-key': `"${serial}"` }) },
    })
  try {
    for (let round = 0; round < 3; round++) expect((await create()).status).toBe(201)
    await using other = await openSql(service.databaseUrl)
    await other('begin immediate')
    const start = performance.now()
    const isHeld = () => performance.now() - start < HELD
    const ask = async (path: string) => {
      const answers: Timed[] = []
      while (isHeld()) {
        answers.push(await timed(path))
        await setTimeout(20)
      }
      return answers
    }
    const asking = Promise.all(['/v1/pets', '/v1/pets/1', '/healthz', '/readyz'].map(ask))
    const creations: Promise<Timed>[] = []
    while (isHeld()) {
      creations.push(create())
      await setTimeout(100)
    }
    const answers = await asking
    await other('rollback')
    const released = performance.now()
    const next = await create()
    const created = await Promise.all(creations)
    for (const calls of answers) {
      expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
      const times = calls.map(({ took }) => took).sort((one, other) => one - other)
      expect(times[Math.floor(times.length * 0.95)]).toBeLessThan(PROMPT)
      expect(times.at(-1), 'the longest response: the process is not blocked').toBeLessThan(
        4 * PROMPT,
      )
    }
    for (const { status, began, took } of created) {
      const left = began + TIMEOUT - released
      // A creation whose deadline is close to the release may return either status.
      if (left < -200) expect(status).toBe(503)
      if (left > 200) expect(status).toBe(201)
      expect(took).toBeLessThan(TIMEOUT + 500)
      if (status === 503) expect(took).toBeGreaterThan(TIMEOUT - 50)
    }
    expect(next.status).toBe(201)
    expect(next.took, 'milliseconds after the release of the lock').toBeLessThan(500)
    const made = created.filter(({ status }) => status === 201).length
    const total = 3 + 1 + made
    expect(
      await service.countPets(),
      'the number of pets: creations with 503 are not executed',
    ).toBe(total)
    await setTimeout(500)
    await until('no creation is executed later', async () => (await service.countPets()) === total)
  } finally {
    await service.stop()
  }
})
