/** What operators do to a MySQL server, its tables and its users. */
import { inspect } from 'node:util'
import { sql } from 'kysely'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import type { RootDatabase } from '../../../../db/database.ts'
import { Deadline } from '../../../../db/deadline.ts'
import { DatabaseUnavailableError } from '../../../../db/errors.ts'
import { TABLES } from '../../../../db/migrations.ts'
import { execute } from '../../../../db/statement.ts'
import { inTransaction } from '../../../../db/transaction.ts'
import { petStore } from '../../../../src/petstore/pets/store.ts'
import { pass } from '../../../support/clock.ts'
import { mysqlForFile, newDatabase } from '../../../support/database.ts'
import { running, until } from '../../../support/instance.ts'
import { addPet } from '../../../support/pets.ts'
import { programs, runToEnd } from '../../../support/process.ts'
import { createKey } from '../../../support/service.ts'
import { openSql } from '../../../support/sql.ts'

const mysql = await mysqlForFile(['--innodb-flush-log-at-trx-commit=2', '--skip-name-resolve'])
const { url } = await newDatabase(mysql.url)
await createKey(url) // migrates
const admin = await openSql(url)
await admin("insert into pets (name, category_id, status) values ('Rex', 3, 'sold')")

async function newDb(to = url, warn?: (message: string) => void) {
  const db = await connect(to, { timeout: 5_000, ...(warn && { warn }) })
  onTestFinished(() => db.destroy())
  const sold = async () => {
    using deadline = new Deadline(5_000)
    return (await petStore(db).list({ deadline }, { limit: 20, status: 'sold' })).items
  }
  return { db, sold }
}
/** Returns why the database cannot be used. */
const reason = async (to: string) => {
  const { sold } = await newDb(to)
  const error = await sold().catch((error) => error)
  return error.cause?.message
}
const withUser = (name: string, search = '') =>
  Object.assign(new URL(url), { username: name, password: 'secret', search }).href

test('a setting that may lose what was acknowledged is reported once', async () => {
  const warnings: string[] = []
  const { db } = await newDb(url, (warning) => warnings.push(warning))
  await Promise.all([1, 2, 3].map(() => execute(db, sql`select sleep(0.1)`)))
  expect(warnings).toEqual([
    expect.stringMatching(/has innodb_flush_log_at_trx_commit = 2, not 1: .* may lose/),
    ...warnings.slice(1).map(() => expect.stringMatching(/has sync_binlog = 0/)),
  ])
})

test('a list is read although the server limits the rows of a query', async () => {
  await admin('set global max_join_size = 1')
  onTestFinished(async () => void (await admin('set global max_join_size = 18446744073709551615')))
  await admin("insert into pets (name, category_id, status) values ('Bella', 3, 'sold')")
  const { sold } = await newDb()
  expect(await sold()).toHaveLength(2)
  await admin("delete from pets where name = 'Bella'")
})

test('a table that loses its transactions while the service runs: a minute later each new session is refused', async () => {
  const { db, sold } = await newDb()
  await admin('create table pets_of_2025 like pets') // of the operator
  await admin('alter table pets_of_2025 engine = MyISAM')
  expect(await sold()).toHaveLength(1)
  const idOf = async () =>
    (await execute(db, sql<{ id: bigint }>`select connection_id() as id`)).rows[0]?.id
  const id = await idOf()
  await admin('alter table pets engine = MyISAM')
  await admin(`kill ${id}`)
  expect(await sold(), 'the server was checked a moment ago').toHaveLength(1)
  pass(61_000)
  await admin(`kill ${await idOf()}`)
  await expect(sold()).rejects.toMatchObject({
    hadNoEffect: true,
    cause: {
      message: 'Tables must have the storage engine InnoDB: alter table pets engine = InnoDB',
    },
  })
  await admin('alter table pets engine = InnoDB')
  expect(await sold()).toHaveLength(1)
})

test('a table that loses its transactions: noticed once a session is replaced, which ends the others too', async () => {
  const { db, sold } = await newDb()
  const ids = async () => {
    const ask = () => execute(db, sql<{ id: bigint }>`select connection_id() as id, sleep(0.1)`)
    const answers = await Promise.all([ask(), ask(), ask()])
    return answers.map(({ rows }) => Number(rows[0]?.id))
  }
  const before = await ids()
  await admin('alter table pets engine = MyISAM')
  onTestFinished(async () => void (await admin('alter table pets engine = InnoDB')))
  pass(4 * 60_000 - 1)
  expect(await sold(), 'until then').toHaveLength(1)
  vi.restoreAllMocks()
  pass(5 * 60_000)
  await ids() // in use: no session is idle for long
  await until('the others have ended', async () => {
    const open = await admin('select id from information_schema.processlist')
    return !open.some(({ id }) => before.includes(Number(id)))
  })
  await expect(sold()).rejects.toMatchObject({
    cause: { message: expect.stringContaining('alter table pets engine = InnoDB') },
  })
})

test('a trigger that is added while the service runs: once a session is replaced, all sessions know', async () => {
  const { db } = await newDb()
  const ask = () => execute(db, sql`select sleep(0.1)`)
  await Promise.all([ask(), ask(), ask()])
  expect(await hasConsecutiveIds(db)).toBe(true)
  await admin('create trigger other before insert on pets for each row set new.id = new.id')
  onTestFinished(async () => void (await admin('drop trigger other')))
  pass(5 * 60_000)
  await Promise.all([ask(), ask(), ask()])
  await until('one is replaced', async () => !(await hasConsecutiveIds(db)))
  const all = await Promise.all([1, 2, 3].map(() => hasConsecutiveIds(db)))
  expect(all).toEqual([false, false, false])
})

test('a server whose transactions only read, by default', async () => {
  const [name] = await admin(
    "show variables where variable_name in ('tx_read_only', 'transaction_read_only')",
  )
  await admin(`set global ${name?.Variable_name} = 'ON'`)
  onTestFinished(async () => void (await admin(`set global ${name?.Variable_name} = 'OFF'`)))
  const { db } = await newDb()
  using deadline = new Deadline(5_000)
  const { id } = await addPet(petStore(db), { deadline }, { name: 'Max', ...pet })
  const removal = db.kysely.deleteFrom('pets').where('id', '=', id)
  await inTransaction(db, (inside) => execute(inside, removal))
})

const pet = { categoryId: 3n, status: 'available' } as const

test('a right that was revoked and is granted again: the next creation succeeds', async () => {
  const place = new URL(url).pathname.slice(1)
  await admin("create user clerk@'%' identified by 'secret'")
  await admin(`grant all on \`${place}\`.* to clerk@'%'`)
  const { db } = await newDb(withUser('clerk'))
  const create = async () => {
    using deadline = new Deadline(5_000)
    return await addPet(petStore(db), { deadline }, { name: 'Given', ...pet })
  }
  await create()
  await admin(`revoke insert on \`${place}\`.* from clerk@'%'`)
  const sessions = await admin("select id from information_schema.processlist where user = 'clerk'")
  for (const { id } of sessions) await admin(`kill ${id}`)
  await expect(create()).rejects.toThrow(DatabaseUnavailableError)
  await admin(`grant insert on \`${place}\`.* to clerk@'%'`)
  await create()
  await admin("delete from pets where name = 'Given'")
})

test('a row that a trigger cannot take, whatever its error: the other rows of its statement are added', async () => {
  await admin(`create trigger audit after insert on pets for each row
    if new.name = 'bad' then set @audited = (select 1 union select 2); end if`)
  onTestFinished(async () => {
    await admin('drop trigger audit')
    await admin("delete from pets where name <> 'Rex'")
  })
  const { db } = await newDb()
  using deadline = new Deadline(5_000)
  const names = Array.from({ length: 20 }, (_, index) => (index === 7 ? 'bad' : `good ${index}`))
  const outcomes = await Promise.allSettled(
    names.map((name) => addPet(petStore(db), { deadline }, { name, ...pet })),
  )
  const failed = names.filter((_, index) => outcomes[index]?.status === 'rejected')
  expect(failed).toEqual(['bad'])
})

/** Whether the next session has consecutive ids. */
async function hasConsecutiveIds({ runner }: RootDatabase): Promise<boolean> {
  using deadline = new Deadline(5_000)
  const session = await runner.borrow('write', deadline)
  runner.giveBack(session, 'write')
  return session.hasConsecutiveIds
}

/** Whether creations share statements for this user, and what the operator is told. */
async function batchesOf(user: string, ...statements: string[]) {
  const place = new URL(url).pathname.slice(1)
  await admin(`create user ${user}@'%' identified by 'secret'`)
  for (const statement of statements) await admin(statement.replaceAll('DB', place))
  const warnings: string[] = []
  const { db } = await newDb(withUser(user), (warning) => warnings.push(warning))
  const [one, other] = await Promise.all([1, 2].map(() => hasConsecutiveIds(db)))
  expect(one).toBe(other)
  const isBatched = one
  return { isBatched, warnings: warnings.filter((text) => text.includes('trigger')) }
}
const ofTables = (rights: string, user: string) =>
  TABLES.map((table) => `grant ${rights} on \`DB\`.${table} to ${user}@'%'`)

test('a user whose rights are for a pattern of names: creations share statements once what the warning says is granted', async () => {
  const { isBatched, warnings } = await batchesOf('p1', "grant all on `petst%`.* to p1@'%'")
  expect([isBatched, warnings]).toEqual([
    false,
    [expect.stringMatching(/: grant trigger on .+ to the user$/)],
  ])
  const [, grant = ''] = /: (grant trigger on .+ to) the user$/.exec(`${warnings[0]}`) ?? []
  const granted = await batchesOf('p6', "grant all on `petst%`.* to p6@'%'", `${grant} p6@'%'`)
  expect(granted).toMatchObject({ isBatched: true, warnings: [] })
})

test('a user whose rights are for the database, as docs/operating.md grants them: creations share statements', async () => {
  const { isBatched, warnings } = await batchesOf('p7', "grant all on `DB`.* to p7@'%'")
  expect([isBatched, warnings]).toEqual([true, []])
})

test('a user whose rights are for each table: creations share statements with TRIGGER alone, and else one line says so', async () => {
  expect(await batchesOf('p2', ...ofTables('all', 'p2'))).toMatchObject({
    isBatched: true,
    warnings: [],
  })
  const given = await batchesOf('p3', ...ofTables('select, insert, update, delete', 'p3'))
  expect(given).toMatchObject({
    isBatched: false,
    warnings: [expect.stringMatching(/: grant trigger on .+ to the user$/)],
  })
})

test('rights that are revoked again: creations share statements once TRIGGER is granted for the database', async ({
  skip,
}) => {
  await admin('set global partial_revokes = ON').catch(() => skip('MariaDB has no partial revokes'))
  const revoked = await batchesOf(
    'p4',
    "grant all on *.* to p4@'%'",
    "revoke trigger on `DB`.* from p4@'%'",
  )
  expect(revoked).toMatchObject({
    isBatched: false,
    warnings: [expect.stringContaining('grant trigger')],
  })
  // As on managed servers.
  const managed = await batchesOf(
    'p5',
    "grant all on *.* to p5@'%'",
    "revoke trigger, drop on mysql.* from p5@'%'",
    "grant trigger on `DB`.* to p5@'%'",
  )
  expect(managed).toMatchObject({ isBatched: true, warnings: [] })
})

test('without its index, and through a view, a list is read too', async () => {
  const { sold } = await newDb()
  await admin('alter table pets rename index pets_status_id to other')
  expect(await sold()).toHaveLength(1)
  await admin('alter table pets rename index other to pets_status_id')
  await admin('rename table pets to kept')
  await admin('create view pets as select * from kept')
  expect(await sold()).toHaveLength(1)
  await admin('drop view pets')
  await admin('rename table kept to pets')
})

test('a transaction that init_connect begins is not that of a creation', async () => {
  // The server runs it only for users without special rights.
  await admin("create user app@'%' identified by 'secret'")
  await admin(`grant all on ${new URL(url).pathname.slice(1)}.* to app@'%'`)
  await admin("set global init_connect = 'start transaction'")
  onTestFinished(async () => void (await admin("set global init_connect = ''")))
  const { db } = await newDb(withUser('app'))
  using deadline = new Deadline(5_000)
  const pet = { name: 'Luna', categoryId: 3n, status: 'sold' } as const
  const { id } = await addPet(petStore(db), { deadline }, pet)
  expect(await admin("select id from pets where name = 'Luna'")).toEqual([{ id }])
  await admin("delete from pets where name = 'Luna'")
})

test('the socket of a server on this machine, also for the end of a statement', async () => {
  const [{ path } = {}] = await admin('select @@socket as path')
  const { db } = await newDb(`${url.replace('127.0.0.1', 'db.invalid')}?socketPath=${path}`)
  using deadline = new Deadline(300)
  const before = await execute(db, sql`select 1 as one`)
  expect(before.rows).toEqual([{ one: 1n }])
  const late = execute(db, sql`select sleep(20)`, deadline)
  await expect(late).rejects.toThrow('cannot be used')
  await until('it ends', async () => (await running(admin, 'select sleep%')).length === 0, 10_000)
})

test('a user who needs TLS: the reason names ssl-mode', async () => {
  await admin("create user secure@'%' identified by 'secret' require ssl")
  await admin("grant all on *.* to secure@'%'")
  const remedy =
    /^Access denied for user .*; if it requires TLS, DATABASE_URL must end in \?ssl-mode=REQUIRED$/
  expect(await reason(withUser('secure'))).toMatch(remedy)
  expect(await reason(withUser('nobody', '?ssl-mode=REQUIRED'))).not.toMatch(/ssl-mode/)
})

test('a Node that may compile no code: the reason names the option', async () => {
  const option = '--disallow-code-generation-from-strings'
  const variables = { DATABASE_URL: url, NODE_OPTIONS: option }
  expect(await runToEnd(programs.migrate, variables)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      new RegExp(
        `^DATABASE_URL: cannot use the database \\S+: .+: start Node without ${option}\n$`,
      ),
    ),
  })
})

test('a plugin that the driver does not know: the reason names those that work', async ({
  skip,
}) => {
  await admin("install soname 'auth_ed25519'").catch(() => skip('MySQL has no such plugin'))
  await admin("create user modern@'%' identified via ed25519 using password('secret')")
  expect(await reason(withUser('modern'))).toBe(
    'Server requests authentication using unknown plugin client_ed25519: the user must log in by mysql_native_password, caching_sha2_password or sha256_password',
  )
})

/** Statements that the server rejects, each with a text for `?`, and what the operator must learn of it. */
const rejected: [statement: string, value: string, learns: string][] = [
  ['insert into t (name) values (?)', "O'Sesame' for key 'x", "Duplicate entry '…' for key "],
  ['insert into t (n) values (?)', 'Sesame', "Incorrect integer value: '…' for column "],
  ['insert into t (d) values (?)', 'Sesame', "Incorrect datetime value: '…' for column "],
  ['insert into t (l) values (?)', '\u{1F415}', "Incorrect string value: '…' for column "],
  ['insert into t (n) values (?)', '98765432198', "Out of range value for column 'n' at row 1"],
  ['insert into t (l) values (?)', 'Sesame '.repeat(9), "Data too long for column 'l' at row 1"],
  ['insert into t (e) values (?)', 'Sesame', "Data truncated for column 'e' at row 1"],
  ['insert into t (c) values (?)', 'Sesame', 'only_short'],
  ['insert into parts values (?)', '987654321', 'Table has no partition for value …'],
  ['update t set n = ? + 1', 'Sesame', "Truncated incorrect DOUBLE value: '…'"],
  [
    'update t set n = cast(? as signed) * 9223372036854775807',
    '987654321',
    "value is out of range in '",
  ],
  ['updat t set l = ?', 'Sesame', "near '…'"],
]

test.each(['en_US', 'de_DE'])(
  'the texts of the errors of a server in %s do not quote values, but name columns and keys',
  async (language) => {
    await admin(`set global lc_messages = '${language}'`)
    onTestFinished(async () => void (await admin("set global lc_messages = 'en_US'")))
    await admin(
      `create table t (id int auto_increment primary key, name varchar(99) unique, n int, d datetime,
        l varchar(20) character set latin1, e enum('a', 'b'), c varchar(9),
        constraint only_short check (length(c) < 5))`,
    )
    await admin(
      'create table parts (id bigint) partition by list (id) (partition one values in (1))',
    )
    onTestFinished(async () => void (await admin('drop table t, parts')))
    const { db } = await newDb()
    await admin('insert into t (name, n) values (?, 1)', [rejected[0]?.[1]])
    for (const [statement, value, learns] of rejected) {
      const [before = '', after] = statement.split('?')
      // As a value in the text, which a server in between may make of it.
      for (const query of [
        sql`${sql.raw(before)}${value}${sql.raw(String(after))}`,
        sql.raw(statement.replace('?', () => `'${value.replaceAll("'", "''")}'`)),
      ]) {
        const error: Error = await execute(db, query).then(
          () => expect.unreachable(statement),
          (error) => error,
        )
        const shown = inspect(error, { depth: 9, showHidden: true })
        expect(shown, statement).not.toMatch(/Sesame|98765|\u{1F415}|F0/u)
        expect(shown).toContain(learns)
        expect(shown).toMatch(/errno: \d{4}|DuplicateError/)
      }
    }
  },
)
