/** A session whose ids are not consecutive: concurrent creations have their own ids. */
import type { Generated } from 'kysely'
import { expect, test } from 'vitest'
import { transformer } from '../../client/src/encoding.ts'
import { inserts } from '../../db/coalesce/inserts.ts'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { serviceForFile } from '../support/service.ts'

const database = await newProxiedDatabase()
const { proxy } = database
proxy.rewrite((statement) =>
  statement.replace(/^set session autocommit/, 'set auto_increment_increment = 3, autocommit'),
)
const service = await serviceForFile({}, { database })

test('a row without an id of the database is an error, and no statement but an insert has one', async () => {
  await using db = await connect(database.url)
  await service.sql('create table plain (id bigint primary key default 7, name varchar(9))')
  const tables = db.withTables<{ plain: { id: Generated<bigint>; name: string } }>()
  const { insertId, numUpdatedRows } = await tables
    .updateTable('plain')
    .set({ name: 'x' })
    .executeTakeFirst()
    .then((result) => ({ insertId: 'insertId' in result, ...result }))
  expect([insertId, numUpdatedRows]).toEqual([false, 0n])
  const insert = inserts('plain' as 'pets', (name: string) => ({ name }) as never)
  using deadline = new Deadline(5_000)
  await expect(insert(db, 'Rex', deadline)).rejects.toThrow(
    'The database returned no id for a row of plain',
  )
  await service.sql('drop table plain')
})

// Neither a few creations nor many share a statement, because their ids would be unknown.
test.each([2, 20])(
  'ids with an increment of three: %i creations of one batch have their own',
  async (count) => {
    const names = Array.from({ length: count }, (_, index) => `${index} of ${count}`)
    const inputs = names.map((name, index) => [
      index,
      transformer.serialize({ name, categoryId: 3 }),
    ])
    const begun = proxy.statements.length
    const answer = await service.fetch(`/trpc/${names.map(() => 'createPet').join()}?batch=1`, {
      method: 'POST',
      body: JSON.stringify(Object.fromEntries(inputs)),
    })
    expect(answer.status).toBe(200)
    const results = (await answer.json()) as { result: { data: string } }[]
    const made = results.map(({ result }) => transformer.deserialize(result.data))
    const rows = await service.sql('select id, name from pets')
    const kept = new Map(rows.map(({ id, name }) => [id, name]))
    for (const [index, pet] of made.entries()) {
      const { id, name } = pet as { id: bigint; name: string }
      expect([name, kept.get(id)]).toEqual([names[index], names[index]])
    }
    const sent = proxy.statements.slice(begun).filter((text) => text.startsWith('insert'))
    expect(sent).toHaveLength(count)
  },
)
