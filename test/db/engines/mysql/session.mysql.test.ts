/** A server with unsuitable settings, which each session corrects. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import { execute } from '../../../../db/statement.ts'
import { type MysqlServer, startMysql } from '../../../support/mysql.ts'
import { failToStart, programs, runToEnd } from '../../../support/process.ts'
import { type Proxy as Between, proxied } from '../../../support/proxy.ts'
import { type Service, startService } from '../../../support/service.ts'
import { openSql } from '../../../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

// In GBK, the last byte of the first character and the backslash before the quote are one character.
// With NO_BACKSLASH_ESCAPES a backslash escapes nothing.
const ATTACKS = [
  `縗', 3, (select left(hash, 16) from api_keys limit 1)) -- `,
  `縗\\', 3, 'sold') -- `,
  `縗" or 1=1 -- `,
  '縗\\',
  '縗',
  `\u00bf' or 1=1 -- `,
  '運誠',
  '🐶',
  `\\', 3, 'sold') -- `,
  `\\\\'`,
  `O'Brien`,
  '\\',
  '"',
  'a\nb',
]

// Not all servers have the option to ignore the character set of the client, so `init_connect` sets it too.
const WRONG = [
  '--autocommit=0',
  '--completion-type=CHAIN',
  '--transaction-isolation=READ-UNCOMMITTED',
  '--default-storage-engine=MyISAM',
  '--innodb-default-row-format=COMPACT',
  '--loose-max-statement-time=60',
  '--loose-skip-character-set-client-handshake',
  '--character-set-server=gbk',
  '--collation-server=gbk_chinese_ci',
  '--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES',
  `--init-connect=set autocommit = 0, completion_type = 1, unique_checks = 0, sql_select_limit = 1, sql_safe_updates = 1, names gbk`,
]

describe.skipIf(process.env.TEST_DATABASE_URL)('unsuitable settings', () => {
  let mysql: MysqlServer
  let databaseUrl: string
  let service: Service
  const start = () => startService({}, { database: { url: databaseUrl, remove: async () => {} } })
  beforeAll(async () => {
    mysql = await startMysql(WRONG)
    await using admin = await openSql(mysql.url)
    await admin('create database petstore')
    // The server runs `init_connect` only for users without special rights.
    await admin("create user app@'%'")
    await admin("grant all on petstore.* to app@'%'")
    const url = new URL(`${mysql.url}/petstore`)
    url.username = 'app'
    databaseUrl = url.href
    service = await start()
  })
  afterAll(async () => {
    await service?.stop()
    await mysql?.remove()
  })

  const post = (name: string, headers = {}) =>
    service.rest('POST', '/pets', { headers, body: { ...rex, name } })

  test('acknowledged pets, their keys and API keys are stored after a stop', async () => {
    const made = await runToEnd(programs.keys, { DATABASE_URL: databaseUrl }, [
      'create',
      'shop',
      '--forever',
    ])
    const authorization = `Bearer ${made.stdout.trim()}`
    const keyed = (name: string) => post(name, { authorization, 'idempotency-key': `"${name}"` })
    const pets: unknown[] = []
    for (let round = 0; round < 3; round++) {
      for (const calls of [keyed, post]) {
        const names = Array.from({ length: 8 }, (_, index) => `${round} ${index} ${calls.name}`)
        const answers = await Promise.all(names.map((name) => calls(name)))
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
        pets.push(...answers.map(({ body }) => body))
      }
    }
    await service.stop()
    service = await start()
    const list = await service.rest('GET', '/pets?limit=100', { headers: { authorization } })
    expect(list.status).toBe(200)
    expect(list.body).toHaveLength(pets.length)
    expect(list.body).toEqual(expect.arrayContaining(pets))
    expect(pets).toContainEqual((await keyed('0 0 keyed')).body)
  })

  test('a session has the settings whose lack shows only under load or after a loss', async () => {
    await using db = await connect(databaseUrl)
    const { rows } = await execute(
      db,
      sql`select @@unique_checks as checks, @@wait_timeout as idle`,
    )
    expect(rows).toEqual([{ checks: 1n, idle: 60n }])
    const limit = await execute(
      db,
      sql<{ Value: string }>`show variables like 'max_statement_time'`,
    )
    expect(limit.rows.filter(({ Value }) => Number(Value) !== 0)).toEqual([])
  })

  test.each(ATTACKS)('%j is a name, not a part of a statement', async (name) => {
    const made = await post(name)
    expect(made).toMatchObject({ status: 201, body: { name, status: 'available' } })
    const { id } = made.body as { id: number }
    expect((await service.rest('GET', `/pets/${id}`)).body).toEqual({
      id,
      name,
      categoryId: 3,
      status: 'available',
    })
  })

  test('a name that is too long for its column is not truncated', async () => {
    await service.sql('alter table pets rename to whole')
    await service.sql('create table pets like whole')
    await service.sql('alter table pets modify name varchar(3) not null')
    try {
      expect((await post('Bella')).status).toBe(500)
      expect(await service.sql('select id from pets')).toEqual([])
    } finally {
      await service.sql('drop table pets')
      await service.sql('alter table whole rename to pets')
    }
  })

  describe('a proxy that does not pass on SET', () => {
    let proxy: Between
    let url: string
    beforeAll(async () => {
      ;({ proxy, url } = await proxied(databaseUrl))
    })
    afterAll(() => proxy.cut())

    test.each([
      ['autocommit', /autocommit = 'ON', /],
      ['sql_mode', /sql_mode = '[^']+', /],
      ['character_set_client', /, names .*/],
      ['character_set_connection', /names .*/, 'character_set_client = utf8mb4'],
      [
        'character_set_results',
        /names .*/,
        'character_set_client = utf8mb4, collation_connection = utf8mb4_bin',
      ],
      ['transaction_isolation', /^set session transaction .*/, 'do 0'],
    ])('a wrong %s: the connection is rejected', async (name, part, instead = '') => {
      proxy.rewrite((statement) => statement.replace(part, instead))
      await using db = await connect(url)
      const ask = () => execute(db, sql`select 1`).catch((error) => error)
      const refused = await ask()
      expect((await ask()).name, 'a second statement').toBe('DatabaseUnavailableError')
      expect(refused).toMatchObject({
        name: 'DatabaseUnavailableError',
        hadNoEffect: true,
        cause: { message: expect.stringMatching(`[(;] ?${name} is .*, not `) },
      })
    })

    test('the start fails with the remedy', async () => {
      proxy.rewrite((statement) => statement.replace(/autocommit = 'ON', /, ''))
      expect(await failToStart({ DATABASE_URL: url })).toMatchObject({
        code: 1,
        message: `DATABASE_URL: cannot use the database ${new URL(url).host}/petstore: The variables of the session are wrong (autocommit is OFF, not ON): a proxy must pass SET statements on`,
      })
    })
  })

  test('a server that logs statements: the start fails with the remedy', async () => {
    const { url, remove } = await startMysql([
      '--log-bin=log',
      '--server-id=1',
      '--binlog-format=STATEMENT',
    ])
    await using admin = await openSql(url)
    await admin('create database petstore')
    const ended = await failToStart({ DATABASE_URL: `${url}/petstore` })
    await remove()
    expect(ended).toMatchObject({
      code: 1,
      message: `DATABASE_URL: cannot use the database ${new URL(url).host}/petstore: The server logs statements: binlog_format must be ROW or MIXED`,
    })
  })
})
