/** Databases whose ids are not consecutive, or not in the answer to an insert. */
import { expect, onTestFinished, test } from 'vitest'
import { transformer } from '../../src/wire/encoding.ts'
import { until } from '../support/instance.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { createKey, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

/** Makes this many creations in one batch on a database, whose server and tables were changed before. */
async function create(count: number, { increment = 1, changes = [] as string[], user = '' } = {}) {
  const database = await newProxiedDatabase()
  const { proxy, url } = database
  await createKey(url) // migrates
  await using sql = await openSql(url)
  for (const change of changes) await sql(change)
  const serverUrl = new URL(url)
  if (user) {
    await sql(`create user if not exists ${user}@'%'`)
    const rights = 'select, insert, update, delete, create, alter, index'
    await sql(`grant ${rights} on ${serverUrl.pathname.slice(1)}.* to ${user}@'%'`)
    await sql(`grant all on other.* to ${user}@'%'`)
    Object.assign(serverUrl, { username: user, password: '' })
  }
  const set = `set auto_increment_increment = ${increment}, autocommit`
  proxy.rewrite((statement) => statement.replace(/^set session autocommit/, set))
  const service = await startService({}, { database: { ...database, url: serverUrl.href } })
  onTestFinished(service.stop)
  const begun = proxy.statements.length
  const warnings = () =>
    service.logged.filter((line) => /may hide triggers from the user/.test(line))
  // At the start: no call has been made. The log is written a moment later. MariaDB may show a trigger.
  const isWarned = user !== '' && changes.length === 0
  if (isWarned) await until('the start has warned', () => warnings().length > 0)
  const warned = warnings()
  const names = Array.from({ length: count }, (_, index) => `${index} of ${count}`)
  const inputs = names.map((name, index) => [index, transformer.serialize({ name, categoryId: 3 })])
  const answer = await service.fetch(`/trpc/${names.map(() => 'createPet').join()}?batch=1`, {
    method: 'POST',
    body: JSON.stringify(Object.fromEntries(inputs)),
  })
  return {
    service,
    /** What the start said about the rights of the user, and whether it had to. */
    warned,
    isWarned,
    names,
    results: (await answer.json()) as { result?: { data: string } }[],
    rows: () => service.sql('select id, name from pets'),
    statements: () => proxy.statements,
    inserts: proxy.statements.slice(begun).filter((text) => text.startsWith('insert')),
  }
}

const assigned = [
  'create table assigned (n bigint)',
  'insert into assigned values (1000)',
  `create trigger assign before insert on pets for each row begin
    update assigned set n = n + 1; set new.id = (select n from assigned); end`,
]

// Neither a few creations nor many share a statement, because their ids would be unknown.
test.each([
  ['an increment of three', 2, { increment: 3 }],
  ['an increment of three', 20, { increment: 3 }],
  ['a trigger', 20, { changes: assigned }],
  ['a trigger that the user may not see', 20, { changes: assigned, user: 'blind' }],
  ['none, or by a trigger that MySQL hides from this user', 20, { user: 'blind' }],
  [
    'a trigger of the table of a view',
    20,
    {
      changes: [
        ...assigned,
        'rename table pets to animals',
        'create view pets as select id, name, category_id, status from animals',
      ],
    },
  ],
])('ids by %s: %i creations of one batch have their own', async (_, count, given) => {
  const { names, results, rows, inserts, warned, isWarned } = await create(count, given)
  if (isWarned || !('user' in given)) expect(warned).toHaveLength(isWarned ? 1 : 0)
  const kept = new Map((await rows()).map(({ id, name }) => [id, name]))
  for (const [index, { result }] of results.entries()) {
    const { id, name } = transformer.deserialize(`${result?.data}`) as { id: bigint; name: string }
    expect([name, kept.get(id)]).toEqual([names[index], names[index]])
  }
  expect(inserts).toHaveLength(count)
})

test('ids by an increment of three: creations with keys share a transaction, and have their own', async () => {
  const { service, rows, statements } = await create(1, { increment: 3 })
  const before = statements().length
  const names = Array.from({ length: 20 }, (_, index) => `keyed ${index}`)
  const answers = await Promise.all(
    names.map((name) => {
      const headers = { 'idempotency-key': `"${name}"` }
      return service.rest('POST', '/pets', { headers, body: { name, categoryId: 3 } })
    }),
  )
  const kept = new Map((await rows()).map(({ id, name }) => [Number(id), name]))
  const made = answers.map(({ body }) => kept.get((body as { id: number }).id))
  expect(made).toEqual(names)
  const sent = statements().slice(before)
  const count = (start: string) => sent.filter((text) => text.startsWith(start)).length
  expect(count('insert into `pets`')).toBe(20)
  expect(count('begin')).toBeLessThan(10)
  expect(count('insert into `idempotency_keys`')).toBe(count('begin'))
})

test('ids that the server does not return: 500, and no creation is repeated', async ({ skip }) => {
  const changes = [
    'create sequence ids',
    'alter table pets modify id bigint not null default nextval(ids)',
  ]
  const made = await create(9, { changes }).catch((error) => {
    skip(/error in your SQL syntax/.test(error), 'MySQL has no sequences')
    throw error
  })
  expect(made.results.map(({ result }) => result)).toEqual(Array(9).fill(undefined))
  const rows = await made.rows()
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
})
