/** Three instances whose clocks are an hour apart, under load: nothing is lost, and nothing happens twice. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { startInstance } from '../support/instance.ts'
import { restClient } from '../support/rest.ts'
import { clockAhead } from '../support/watched.ts'

const HOUR = 3_600_000

/** Seconds of load: a minute, or as many as EVERYTHING says. */
const SECONDS = Number(process.env.EVERYTHING ?? 60)

const mysql = await mysqlForFile()

test('three instances whose clocks are an hour apart: 0 lost, 0 doubled', {
  timeout: (SECONDS + 120) * 1_000,
}, async () => {
  const database = await newDatabase(mysql.url)
  const instances = []
  for (const ahead of [-HOUR, 0, HOUR]) {
    const variables = { IDEMPOTENCY_LIFETIME: '10m', ...clockAhead(ahead) }
    instances.push(await startInstance(variables, database))
  }
  const [first] = instances
  const clients = instances.map(({ origin }) => restClient(origin, `${first?.key}`))
  const made = new Map<string, number>()
  const wrong: unknown[] = []
  const end = performance.now() + SECONDS * 1_000

  /** Creates a pet again and again, each by all instances in turn with one Idempotency-Key. */
  async function write(): Promise<void> {
    while (performance.now() < end) {
      const name = randomUUID()
      for (const [turn, client] of [...clients, ...clients].entries()) {
        const { status, body } = await client('POST', '/pets', {
          headers: { 'idempotency-key': `"${name}"` },
          body: { name, categoryId: 1 },
        })
        const { id } = body as { id: number }
        if (status !== 201 || (made.get(name) ?? id) !== id) wrong.push({ turn, status, body })
        made.set(name, id)
      }
      await setTimeout(1)
    }
  }
  await Promise.all(Array.from({ length: 6 }, write))
  expect(wrong).toEqual([])
  const rows = (await first?.sql('select name, id from pets')) ?? []
  console.info(`${made.size} pets, each created six times in ${SECONDS} s`)
  const stored = rows.map(({ name, id }) => [name, Number(id)])
  expect(new Map(stored as [string, number][])).toEqual(made)
  expect(rows).toHaveLength(made.size)
  for (const { stop } of instances) await stop()
  await database.remove()
})
