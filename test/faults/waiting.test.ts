/** What calls hold while they wait for the database, in the heap that V8 takes in a container of 256 MiB. */
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { type Instance, startInstance } from '../support/instance.ts'
import { residentMemory } from '../support/process.ts'
import { openSql } from '../support/sql.ts'

/** Megabytes. */
const HEAP = 128
const CONTAINER = 256

/** Milliseconds for which the database is locked. */
const LOCKED = 8_000

const SPACES = ' '.repeat(64_000)
const pet = { name: '猫'.repeat(100), categoryId: 3 }
const encoded = JSON.stringify(JSON.stringify([{ name: 1, categoryId: 2 }, pet.name, 3]))
const largePet = JSON.stringify(pet).replace(',', `,${SPACES}`)
const largeBatch = `{"0":${encoded},${SPACES}"1":${encoded}}`
const longQuery = `?note=${'x'.repeat(14_000)}`

const mysql = await mysqlForFile()

interface Load {
  path: string
  body?: string
  /** Unknown, and another one for each call. */
  hasOtherKey?: boolean
  count: number
}

/** Starts the service, locks its database, and returns the function that sends it calls. */
async function locked(databaseUrl: string, lock: string, unlock: string) {
  const database = await newDatabase(databaseUrl)
  const variables = {
    ...{ NODE_OPTIONS: `--max-old-space-size=${HEAP} --max-semi-space-size=8` }, // as in bin/petstore
    ...{ MALLOC_ARENA_MAX: '1', DATABASE_TIMEOUT: '25s' },
  }
  const service = await startInstance(variables, database)
  onTestFinished(async () => {
    await service.stop('SIGKILL')
    await database.remove()
  })
  const agent = new Agent({ maxSockets: 20_000 })
  onTestFinished(() => agent.destroy())
  await service.fetch('/v1/pets') // its key is known
  const locker = await openSql(service.databaseUrl)
  onTestFinished(() => locker.close())
  await locker(lock)
  const begun = performance.now()

  /** Sends the calls, and releases the lock. Returns how many answers have each status. */
  const send = async (loads: Load[]) => {
    const calls = loads.map(async ({ count, ...load }) => {
      const statuses: Promise<unknown>[] = []
      for (let number = 0; number < count; number++) {
        statuses.push(statusOf(service, agent, load))
        if (number % 50 === 49) await setTimeout(20)
      }
      return statuses
    })
    const sent = await Promise.all(calls)
    await setTimeout(Math.max(0, begun + LOCKED - performance.now()))
    const held = residentMemory(service.program.child.pid)
    await locker(unlock)
    const counts = await Promise.all(sent.map(async (all) => countOf(await Promise.all(all))))
    console.log({ held: Math.round(held) }, ...counts)
    return { held, counts }
  }
  return { service, send }
}

/** Returns how often each value is there. */
const countOf = (values: unknown[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(values, String)].map(([value, all]) => [value, all.length]))

/** The status of a call, or the error of its connection. */
const statusOf = (
  { origin, key: own }: Instance,
  agent: Agent,
  { path, body, hasOtherKey }: Omit<Load, 'count'>,
) =>
  new Promise<unknown>((resolve) => {
    const key = hasOtherKey ? `petstore_${randomBytes(32).toString('base64url')}` : own
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const options = { agent, path, headers, method: body ? 'POST' : 'GET' }
    request(origin, options, (answer) => {
      answer.resume().on('error', resolve)
      answer.on('end', () => resolve(answer.statusCode))
    })
      .on('error', resolve)
      .end(body)
  })

const isOf =
  (...expected: string[]) =>
  (values: string[]) =>
    values.every((value) => expected.includes(value))

test.for([
  ['MySQL', mysql.url, 'lock tables pets write', 'unlock tables'],
  ['SQLite', '', 'begin immediate', 'rollback'],
] as const)(
  'large requests of three operations, while the pets are locked in %s',
  { timeout: 240_000 },
  async ([, databaseUrl, lock, unlock]) => {
    const { service, send } = await locked(databaseUrl, lock, unlock)
    const { counts } = await send([
      { path: '/v1/pets', body: largePet, count: 2_500 },
      { path: '/trpc/createPet,createPet?batch=1', body: largeBatch, count: 1_250 },
      { path: `/v1/pets${longQuery}`, count: 2_500 },
    ])
    const [one = {}, two = {}, lists = {}] = counts
    expect([one[201], two[200], lists[200]]).not.toContain(undefined)
    expect(Object.keys({ ...one, ...two, ...lists })).toSatisfy(isOf('200', '201', '503'))
    expect(await service.countPets()).toBe((one[201] ?? 0) + 2 * (two[200] ?? 0))
    expect(await service.stop()).toBe(0)
  },
)

test('large requests with unknown keys, while the keys are locked', async () => {
  const { send } = await locked(mysql.url, 'lock tables api_keys write', 'unlock tables')
  const { held, counts } = await send([
    { path: '/v1/pets', body: largePet, hasOtherKey: true, count: 2_500 },
    { path: `/v1/pets/1${longQuery}`, hasOtherKey: true, count: 2_500 },
  ])
  expect(counts.flatMap(Object.keys)).toSatisfy(isOf('401', '503'))
  expect(held).toBeLessThan(CONTAINER)
})
