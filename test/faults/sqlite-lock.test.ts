/** Another process holds the write lock of the embedded database for longer than a call may take. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startInstance, until } from '../support/instance.ts'
import { openSql } from '../support/sql.ts'

/** Milliseconds that the lock is held, and DATABASE_TIMEOUT. */
const HELD = 8_000
const TIMEOUT = 5_000

/** Milliseconds that an answer may take which needs no lock. */
const PROMPT = 100

interface Timed {
  status: number
  began: number
  took: number
}

test('reads and health checks are answered meanwhile, creations end at their deadline', {
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
      // Every other one with a key.
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
      expect(times.at(-1), 'the process is never blocked').toBeLessThan(4 * PROMPT)
    }
    for (const { status, began, took } of created) {
      const left = began + TIMEOUT - released
      // Those whose time ended about when the lock was free may have had either.
      if (left < -200) expect(status).toBe(503)
      if (left > 200) expect(status).toBe(201)
      expect(took).toBeLessThan(TIMEOUT + 500)
      if (status === 503) expect(took).toBeGreaterThan(TIMEOUT - 50)
    }
    expect(next.status).toBe(201)
    expect(next.took, 'as soon as the lock is free').toBeLessThan(500)
    const made = created.filter(({ status }) => status === 201).length
    const total = 3 + 1 + made
    expect(await service.countPets(), 'what was answered 503 was not done').toBe(total)
    await setTimeout(500)
    await until('no more is done later', async () => (await service.countPets()) === total)
  } finally {
    await service.stop()
  }
})
