/** What a MySQL server says no with, and what comes of it: another attempt, 503, or 500. */
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { inTransaction } from '../../db/transaction.ts'
import { engine } from '../support/database.ts'
import { outOfThree } from '../support/eventually.ts'
import { addKey, type Instance, running, startInstance, until } from '../support/instance.ts'
import { openSql, type Sql } from '../support/sql.ts'

let service: Instance
beforeAll(async () => {
  if (engine === 'mysql') service = await startInstance()
})
afterAll(() => service?.stop())

const rex = { name: 'Rex', categoryId: 3 }
let serial = 0
const create = (withKey: boolean) =>
  service.rest('POST', '/pets', {
    ...(withKey && { headers: { 'idempotency-key': `"key ${serial++}"` } }),
    body: rex,
  })

// What the server answers without having done anything: any creation is tried again.
const withoutEffect: [number, string][] = [
  [1213, 'deadlock, and Galera: another transaction was preferred'],
  [1205, 'a lock that is not let go'],
  [1040, 'too many connections'],
  [1203, 'too many connections of this user'],
  [3101, 'group replication: another transaction was preferred'],
  [1020, 'MariaDB: the row has changed since the snapshot'],
  [1206, 'no memory for another lock'],
  [1226, 'a limit of this user'],
  [1637, 'too many transactions'],
]
// The same from a server that is no good any more: another connection may lead to a better one.
const unfit: [number, string][] = [
  [1290, 'read-only'],
  [1836, 'read-only mode'],
  [1792, 'a read-only transaction'],
  [1047, 'Galera: a node that is not part of the cluster'],
  [1874, 'InnoDB is read-only'],
  [1881, 'InnoDB was started for a recovery'],
  [3032, 'offline mode'],
  [3989, 'a read-only schema'],
  [4031, 'a connection that was idle for too long'],
  [3781, 'group replication: held by a new primary for too long'],
  [3782, 'group replication: held by a new primary that stops'],
  [3783, 'group replication: held by a new primary in an error state'],
  [3796, 'group replication: a consistency that the state of the member does not allow'],
  [3797, 'group replication: an error while waiting for earlier transactions'],
  [3798, 'group replication: an error while waiting for their commits'],
  [3799, 'group replication: the member is stopping'],
  [4094, 'group replication: the primary is being changed'],
]
// Nobody knows whether it happened: only what carries an Idempotency-Key is tried again.
const uncertain: [number, string][] = [
  [1053, 'shutdown'],
  [1077, 'normal shutdown'],
  [1317, 'interrupted'],
  [3024, 'over its time'],
  [1180, 'an error during the commit'],
  [3100, 'group replication: an error of a hook'],
  [1021, 'disk full'],
  [1114, 'table full'],
  [1927, 'MariaDB: the connection was killed'],
  [1969, 'MariaDB: over max_statement_time'],
  [3169, 'the session was killed'],
  [4081, 'over the memory of all connections'],
  [4082, 'over the memory of a connection'],
  [1026, 'an error on writing'],
  [1028, 'sorting was ended'],
  [1030, 'an error of the storage engine'],
  [1037, 'out of memory'],
  [1041, 'out of resources'],
  [1158, 'reading from the network failed'],
  [1159, 'reading from the network took too long'],
  [1160, 'writing to the network failed'],
  [1161, 'writing to the network took too long'],
  [3015, 'the storage engine is out of memory'],
  [3019, 'the undo log is full'],
  [3675, 'disk full, without waiting'],
  [2002, 'a proxy in between: cannot connect to the local server'],
  [2003, 'a proxy in between: cannot connect to the server'],
  [2006, 'a proxy in between: the server has gone away'],
  [2013, 'a proxy in between: lost the server during the statement'],
  [2055, 'a proxy in between: lost the server, with the reason'],
  [9001, 'ProxySQL: no connection to a server in time'],
  [9002, 'ProxySQL: no connection to a server'],
  [9004, 'ProxySQL: the server is offline'],
]
// A bug, or a schema that is not ours: nothing to wait for.
const others: [number, string][] = [
  [1054, 'unknown column'],
  [1146, 'unknown table'],
  [1064, 'syntax'],
  [1142, 'not allowed'],
  [1264, 'out of range'],
]

describe.runIf(engine === 'mysql')('a server that says no', () => {
  beforeEach(async () => {
    await service.sql('delete from pets')
    // Not transactional, so that it tells of attempts that were rolled back too.
    await service.sql('create table attempts (connection bigint) engine = MyISAM')
  })
  afterEach(async () => {
    await service.sql('drop trigger if exists fail')
    await service.sql('drop table attempts')
  })

  /** Lets the first attempts to add a pet fail with the error of this number. */
  async function failFirst(attempts: number, number: number) {
    await service.sql('delete from attempts')
    await service.sql('drop trigger if exists fail')
    await service.sql(`create trigger fail before insert on pets for each row begin
      insert into attempts values (connection_id());
      if (select count(*) from attempts) <= ${attempts} then
        signal sqlstate '45000' set mysql_errno = ${number}, message_text = 'No';
      end if;
    end`)
  }
  const connections = async () =>
    (await service.sql('select connection from attempts')).map(({ connection }) => connection)

  const codeOf = ({ status, body }: { status: number; body: unknown }) => ({
    status,
    ...(status === 201 ? {} : { code: (body as { code: string }).code }),
  })
  const unavailable = { status: 503, code: 'SERVICE_UNAVAILABLE' }

  test.each(withoutEffect)('%i, %s: any creation is tried again', async (number) => {
    await failFirst(1, number)
    expect(codeOf(await create(false))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(2)
    expect(await service.countPets()).toBe(1)
  })

  test.each([1213, 1205])('%i: tried again, twice at most', async (number) => {
    await failFirst(2, number)
    expect(codeOf(await create(false))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(3)
    await failFirst(2, number)
    expect(codeOf(await create(true))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(3)
    expect(await service.countPets()).toBe(2)
    await failFirst(9, number)
    const refused = await create(false)
    expect(codeOf(refused)).toEqual(unavailable)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await connections()).toHaveLength(3)
    expect(await service.countPets()).toBe(2)
  })

  test.each(unfit)('%i, %s: tried again on another connection', async (number) => {
    // For one of them: with a key the connection has a transaction.
    for (const withKey of number === 1290 ? [false, true] : [false]) {
      await failFirst(1, number)
      expect(codeOf(await create(withKey))).toEqual({ status: 201 })
      const [first, second, third] = await connections()
      expect(second).toBeDefined()
      expect(second).not.toBe(first)
      expect(third).toBeUndefined()
    }
  })

  test.each(uncertain)('%i, %s: not tried again without a key', async (number) => {
    await failFirst(1, number)
    expect(codeOf(await create(false))).toEqual(unavailable)
    expect(await connections()).toHaveLength(1)
  })

  test.each([1317, 1969])('%i: tried again under a key', async (number) => {
    await failFirst(2, number)
    expect(codeOf(await create(true))).toEqual({ status: 201 })
    expect(await connections()).toHaveLength(3)
    expect(await service.countPets()).toBe(1)
    await failFirst(9, number)
    expect(codeOf(await create(true))).toEqual(unavailable)
    expect(await connections()).toHaveLength(3)
  })

  test.each(others)('%i, %s: 500 at once', async (number) => {
    for (const withKey of [false, true]) {
      await failFirst(1, number)
      const answer = await create(withKey)
      expect(codeOf(answer)).toEqual({ status: 500, code: 'INTERNAL_SERVER_ERROR' })
      expect(answer.headers.get('retry-after')).toBeNull()
      expect(await connections()).toHaveLength(1)
    }
    expect(await service.countPets()).toBe(0)
  })

  test.each([1205, 1213, 1290, 1317, 1054, 1264, 1927])(
    'the log tells the cause of %i, and nothing of the pet',
    async (number) => {
      const body = { ...rex, name: 'Fiffi of the Log' }
      for (const headers of [{}, { 'idempotency-key': `"log ${number}"` }]) {
        await failFirst(9, number)
        const { status, headers: answered } = await service.rest('POST', '/pets', { headers, body })
        expect(status).toBeGreaterThanOrEqual(500)
        const requestId = answered.get('x-request-id')
        const causes = () =>
          service.program.entries().filter((entry) => entry.requestId === requestId && entry.err)
        await until('the log tells', () => causes().length > 0)
        const isBug = status === 500
        expect(causes()).toEqual([
          {
            level: 50,
            time: expect.any(Number),
            pid: service.program.child.pid,
            hostname: expect.any(String),
            requestId,
            err: isBug
              ? {
                  type: 'Error',
                  message: 'No',
                  stack: expect.stringMatching(/^Error: No\n/),
                  code: expect.stringMatching(/^ER_/),
                  errno: number,
                  sqlState: '45000',
                  sqlMessage: 'No',
                }
              : expect.objectContaining({ message: 'The database cannot be used right now: No' }),
            msg: isBug
              ? 'Internal server error'
              : 'The service cannot use its database right now; try again later',
          },
        ])
      }
      expect(service.program.stderr).not.toContain(body.name)
    },
  )

  test('tRPC says the same', async () => {
    await failFirst(1, 1213)
    expect(await service.trpc.createPet.mutate(rex)).toMatchObject({ name: 'Rex' })
    await failFirst(1, 1317)
    await expect(service.trpc.createPet.mutate(rex)).rejects.toMatchObject({
      data: { code: 'SERVICE_UNAVAILABLE', httpStatus: 503 },
    })
    expect(await connections()).toHaveLength(1)
  })

  test('a statement whose fate was uncertain casts no doubt on the next one', async () => {
    await failFirst(1, 1317)
    expect((await create(false)).status).toBe(503)
    const [before] = await connections()
    await failFirst(1, 1213)
    expect((await create(false)).status).toBe(201)
    // Else this shows nothing: the doubt would have gone with its connection.
    expect(await connections()).toEqual([before, before])
  })

  test('a transaction that the server ended fails, even if its work ignores the error', async () => {
    await failFirst(1, 1213)
    const db = await connect(service.databaseUrl)
    const pet = { name: 'Rex', category_id: 3n, status: 'sold' } as const
    const ended = inTransaction(db, async (transaction) => {
      await transaction
        .insertInto('pets')
        .values(pet)
        .execute()
        .catch(() => {})
    })
    await expect(ended).rejects.toMatchObject({
      name: 'DatabaseUnavailableError',
      hadNoEffect: true,
    })
    await db.destroy()
  })

  test('two transactions that hold what the other needs: the creation is made once', async () => {
    await service.sql('create table one (n int)')
    await service.sql('create table two (n int)')
    await service.sql('insert into one values (0)')
    await service.sql('insert into two values (0)')
    await service.sql(`create trigger fail before insert on pets for each row begin
      update one set n = n + 1;
      update two set n = n + 1;
    end`)
    const { statements = [] } = service.proxy ?? {}
    const attempts = () => statements.filter((text) => text.startsWith('insert into `pets`')).length
    statements.length = 0
    await using rival = await openSql(service.databaseUrl)
    // Who has written less is the one that is rolled back.
    await rival('create table weight (n int)')
    await rival('begin')
    await rival('insert into weight select 7 from information_schema.columns limit 500')
    await rival('update two set n = n + 1')
    const answer = create(false)
    await until('the creation holds what the rival needs next', async () => {
      const free = await service.sql('select n from one for update skip locked')
      return free.length === 0
    })
    await rival('update one set n = n + 1')
    await rival('commit')
    expect((await answer).status).toBe(201)
    expect(attempts()).toBe(2)
    expect(await service.countPets()).toBe(1)
    expect(await service.sql('select one.n as one, two.n as two from one, two')).toEqual([
      { one: 2, two: 2 },
    ])
  })

  test('a lock that is let go after more than a second: waited for once, then tried again', async () => {
    await service.sql('create table held (n int)')
    await service.sql('insert into held values (0)')
    await service.sql(`create trigger fail before insert on pets for each row begin
      insert into attempts values (connection_id());
      update held set n = n + 1;
    end`)
    await using rival = await openSql(service.databaseUrl)
    await rival('begin')
    await rival('update held set n = n + 1')
    const start = performance.now()
    const answer = create(false)
    await until('the second attempt', async () => (await connections()).length === 2)
    expect(performance.now() - start, 'the server waits a second for a lock').toBeLessThan(10_000)
    await rival('commit')
    expect((await answer).status).toBe(201)
    expect(await service.countPets()).toBe(1)
  })

  test(
    'no connection is left for the user: 503 at once, 200 when there is one again',
    outOfThree,
    async () => {
      const user = `only${randomBytes(6).toString('hex')}`
      await service.sql(`create user ${user}@'%' with max_user_connections 1`)
      const [{ name = '' } = {}] = await service.sql('select database() as name')
      await service.sql(`grant all on ${name}.* to ${user}@'%'`)
      const url = new URL(service.databaseUrl)
      url.username = user
      const limited = await startInstance(
        { DATABASE_URL: url.href },
        { url: service.databaseUrl, remove: async () => {} },
      )
      let other: Sql | undefined
      try {
        const ids = await service.sql(
          'select id from information_schema.processlist where user = ?',
          [user],
        )
        for (const { id } of ids) await service.sql(`kill ${id}`)
        await until('the connection is ours', async () => {
          other = await openSql(url.href).catch(() => undefined)
          return other !== undefined
        })
        const start = performance.now()
        const answers = await Promise.all([
          limited.rest('GET', '/pets'),
          limited.rest('POST', '/pets', { body: rex }),
          limited.rest('GET', '/pets/1'),
        ])
        expect(performance.now() - start).toBeLessThan(2_000)
        expect(answers.map(codeOf)).toEqual([unavailable, unavailable, unavailable])
        await other?.close()
        await until('it recovers', async () => (await limited.rest('GET', '/pets')).status === 200)
      } finally {
        await other?.close()
        await limited.stop()
        await service.sql(`drop user ${user}@'%'`)
      }
    },
  )

  test('a statement that is killed: reads and creations under a key are tried again', async () => {
    await using locker = await openSql(service.databaseUrl)
    // The key is remembered, and the pools are warm.
    expect((await service.rest('GET', '/pets')).status).toBe(200)
    const kill = async (how: 'kill' | 'kill query', pattern: string) => {
      let id: number | undefined
      await until('the statement waits', async () => {
        ;[id] = await running(service.sql, pattern)
        return id !== undefined
      })
      const before = sent(pattern)
      await service.sql(`${how} ${id}`)
      return before
    }
    /** How often statements like this were sent. */
    const sent = (pattern: string) => {
      const like = new RegExp(`^${pattern.replaceAll('%', '.*')}`)
      return service.proxy?.statements.filter((text) => like.test(text)).length ?? 0
    }
    for (const how of ['kill', 'kill query'] as const) {
      for (const [call, pattern, status] of [
        [() => service.rest('GET', '/pets'), 'select%from `pets`%', 200],
        [() => service.rest('GET', '/pets/1'), 'select%from `pets`%', 404],
        [() => create(true), 'insert into `pets`%', 201],
      ] as const) {
        await locker('lock tables pets write')
        const answer = call()
        const before = await kill(how, pattern)
        await until('it is tried again', () => sent(pattern) > before)
        await locker('unlock tables')
        expect((await answer).status, `${how} ${pattern}`).toBe(status)
      }
      await locker('lock tables pets write')
      const answer = create(false)
      const before = await kill(how, 'insert into `pets`%')
      expect((await answer).status).toBe(503)
      expect(sent('insert into `pets`%'), 'it is not tried again').toBe(before)
      await locker('unlock tables')
    }
    expect(await service.countPets()).toBe(2)
  })

  test.each(['kill', 'kill query'])(
    '%s of the look-up of a key: it is tried again',
    async (how) => {
      await using locker = await openSql(service.databaseUrl)
      const key = await addKey(service.sql)
      await locker('lock tables api_keys write')
      const headers = { authorization: `Bearer ${key}` }
      const answer = service.rest('GET', '/pets', { headers })
      let id: number | undefined
      await until('the look-up waits', async () => {
        ;[id] = await running(service.sql, 'select%from `api_keys`%')
        return id !== undefined
      })
      await service.sql(`${how} ${id}`)
      await until('the next attempt', async () =>
        (await running(service.sql, 'select%from `api_keys`%')).some((other) =>
          how === 'kill' ? other !== id : true,
        ),
      )
      await locker('unlock tables')
      expect((await answer).status).toBe(200)
    },
  )

  test('connections that were killed while idle are not used', async () => {
    for (let round = 0; round < 5; round++) {
      expect((await service.rest('GET', '/pets')).status).toBe(200)
      const others = () =>
        service.sql(
          `select id from information_schema.processlist
           where db = database() and id <> connection_id()`,
        )
      for (const { id } of await others()) await service.sql(`kill ${id}`)
      await until('they are gone', async () => (await others()).length === 0)
      await fetch(`${service.origin}/healthz`) // by now the process has heard of it
      expect((await create(false)).status).toBe(201)
    }
    expect(await service.countPets()).toBe(5)
  })
})
