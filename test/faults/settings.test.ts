/** The service on MySQL servers with unusual settings, and the effect of DATABASE_TIMEOUT. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { outOfThree } from '../support/eventually.ts'
import { type Instance, startInstance, until } from '../support/instance.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
import { openSql } from '../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

let mysql: MysqlServer
beforeAll(async () => {
  mysql = await startMysql()
})
afterAll(() => mysql.remove())

async function withService(
  variables: Record<string, string>,
  act: (service: Instance) => Promise<void>,
): Promise<void> {
  const service = await startInstance(variables, await newDatabase(mysql.url))
  try {
    await act(service)
  } finally {
    await service.stop()
  }
}

test('a server with NO_BACKSLASH_ESCAPES and without strict mode stores names unchanged', async () => {
  await using admin = await openSql(mysql.url)
  const [{ mode } = {}] = await admin('select @@global.sql_mode as mode')
  await admin("set global sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
  try {
    await withService({}, async (service) => {
      const names = ["\\', 3, 'sold') -- ", "O'Brien", '\\', '"', "\\\\'", 'a\nb', '🐶'.repeat(255)]
      for (const name of names) {
        const made = await service.rest('POST', '/pets', { body: { ...rex, name } })
        expect(made).toMatchObject({
          status: 201,
          body: { name, categoryId: 3, status: 'available' },
        })
        const { id } = made.body as { id: number }
        expect((await service.rest('GET', `/pets/${id}`)).body).toEqual(made.body)
      }
      await service.sql('delete from pets')
      await service.sql('alter table pets modify name varchar(3) not null')
      const cut = await service.rest('POST', '/pets', { body: { ...rex, name: 'Bella' } })
      expect(cut.status, 'a name that is too long is not truncated').toBe(500)
      expect(await service.countPets()).toBe(0)
    })
  } finally {
    await admin('set global sql_mode = ?', [mode])
  }
})

test('DATABASE_TIMEOUT is 5 seconds by default', outOfThree, async () => {
  await withService({ DATABASE_TIMEOUT: '' }, async (service) => {
    await service.rest('GET', '/pets')
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables pets write')
    const start = performance.now()
    const answers = await Promise.all([
      service.rest('GET', '/pets'),
      service.rest('POST', '/pets', { body: rex }),
    ])
    const took = performance.now() - start
    expect(answers.map(({ status }) => status)).toEqual([503, 503])
    expect(took).toBeGreaterThan(4_990)
    expect(took).toBeLessThan(7_000)
  })
})

test(
  'a server that hangs: 503 in time after SIGSTOP, recovery after SIGCONT',
  outOfThree,
  async () => {
    await withService({ DATABASE_TIMEOUT: '1s' }, async (service) => {
      await service.rest('GET', '/pets')
      process.kill(mysql.pid, 'SIGSTOP')
      try {
        // The signal may take effect late.
        await until('the database hangs', async () => !(await fetch(`${service.origin}/readyz`)).ok)
        for (let round = 0; round < 2; round++) {
          const start = performance.now()
          const answers = await Promise.all([
            service.rest('GET', '/pets'),
            service.rest('POST', '/pets', { body: rex }),
            service.rest('POST', '/pets', {
              headers: { 'idempotency-key': `"${round}"` },
              body: rex,
            }),
          ])
          expect(answers.map(({ status }) => status)).toEqual([503, 503, 503])
          expect(performance.now() - start).toBeLessThan(2_900)
        }
        expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
        expect((await fetch(`${service.origin}/readyz`)).status).toBe(503)
      } finally {
        process.kill(mysql.pid, 'SIGCONT')
      }
      await until(
        'the service recovers',
        async () => (await service.rest('GET', '/pets')).status === 200,
      )
      expect((await fetch(`${service.origin}/readyz`)).status).toBe(200)
    })
  },
)

test('a server that is read-only for a while: 503 and new connections, then 201', async () => {
  await using admin = await openSql(mysql.url)
  await admin("create user writer@'%'")
  const database = await newDatabase(mysql.url)
  const url = new URL(database.url)
  await admin(`grant all on ${url.pathname.slice(1)}.* to writer@'%'`)
  url.username = 'writer'
  const service = await startInstance({ DATABASE_URL: url.href }, database)
  expect((await service.rest('POST', '/pets', { body: rex })).status).toBe(201)
  const connections = async () => {
    const rows = await admin("select id from information_schema.processlist where user = 'writer'")
    return rows.map(({ id }) => Number(id))
  }
  const before = await connections()
  await admin('set global read_only = 1')
  const rejected = await service.rest('POST', '/pets', { body: rex })
  expect(rejected).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await until('the service closes its connections', async () => {
    const now = await connections()
    return before.some((id) => !now.includes(id))
  })
  await admin('set global read_only = 0')
  expect((await service.rest('POST', '/pets', { body: rex })).status).toBe(201)
  expect(await service.countPets()).toBe(2)
  await service.stop()
})
