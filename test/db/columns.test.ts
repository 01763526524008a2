/** Columns and indexes that migrations add to tables, even if they run twice or on two nodes. */
import { type Kysely, sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { addColumn, addIndex, createTable } from '../../db/columns.ts'
import { connect } from '../../db/connect.ts'
import { DuplicateError } from '../../db/errors.ts'
import { engine, newDatabase } from '../support/database.ts'

const database = await newDatabase()
// No type contains the table of this test.
const nodes = (await Promise.all([
  connect(database.url),
  connect(database.url),
])) as unknown as Kysely<unknown>[]
const first = () => nodes[0] as Kysely<unknown>
const table = await createTable(first(), 'parcels')
await table.addColumn('label', 'varchar(40)', (column) => column.notNull()).execute()
afterAll(async () => {
  for (const node of nodes) await node.destroy()
  await database.remove()
})

const parcels = () => first().withTables<{ parcels: { label: string; weight: bigint } }>()
/** Runs a migration on two nodes concurrently, and then again; on SQLite once, in one transaction with its record. */
async function onAllNodes(migrate: (db: Kysely<unknown>) => Promise<void>): Promise<void> {
  if (engine === 'mysql') await Promise.all(nodes.map(migrate))
  await migrate(first())
}

test('a migration that runs twice adds a column once', async () => {
  await onAllNodes((db) => addColumn(db, 'parcels', 'weight', 'bigint'))
  await parcels().insertInto('parcels').values({ label: 'a', weight: 7n }).execute()
  expect(await parcels().selectFrom('parcels').select('weight').execute()).toEqual([{ weight: 7n }])
})

test('a migration that runs twice adds an index once, identified by its name', async () => {
  await onAllNodes((db) => addIndex(db, 'parcels', 'parcels_weight', ['weight']))
  await onAllNodes((db) => addIndex(db, 'parcels', 'parcels_label', ['label'], { unique: true }))
  const twin = parcels().insertInto('parcels').values({ label: 'a', weight: 8n })
  await expect(twin.execute()).rejects.toBeInstanceOf(DuplicateError)
})

test('the id of a row that was deleted is not assigned again', async () => {
  const add = async () => {
    const insert = parcels().insertInto('parcels').values({ label: 'gone', weight: 1n })
    return (await insert.executeTakeFirst()).insertId ?? 0n
  }
  const id = await add()
  await parcels().deleteFrom('parcels').where('label', '=', 'gone').execute()
  expect(await add()).toBeGreaterThan(id)
  await parcels().deleteFrom('parcels').where('label', '=', 'gone').execute()
})

test('other errors are thrown', async () => {
  await expect(addColumn(first(), 'nowhere', 'weight', 'bigint')).rejects.toThrow()
  await parcels().insertInto('parcels').values({ label: 'b', weight: 7n }).execute()
  await expect(
    addIndex(first(), 'parcels', 'parcels_unlike', ['weight'], { unique: true }),
  ).rejects.toBeInstanceOf(DuplicateError)
})

test('integers are bigints in columns of any size, in counts and in comparisons', async () => {
  const types = ['tinyint', 'smallint', 'mediumint', 'int', 'bigint']
  const columns = sql.raw(types.map((type) => `of_${type} ${type}`).join())
  await sql`create table sizes (${columns})`.execute(first())
  await sql`insert into sizes values (1, 2, 3, 4, 5), (null, null, null, null, null)`.execute(
    first(),
  )
  const rows = types.map((type, index) => [`of_${type}`, BigInt(index + 1)])
  expect((await sql`select * from sizes`.execute(first())).rows).toEqual([
    Object.fromEntries(rows),
    Object.fromEntries(types.map((type) => [`of_${type}`, null])),
  ])
  const computed = sql`select count(*) as number, max(of_int) as greatest, 1 = 1 as equal,
    cast(sum(of_bigint) as signed) as total from sizes`
  expect((await computed.execute(first())).rows).toEqual([
    { number: 2n, greatest: 4n, equal: 1n, total: 5n },
  ])
})

test('a statement returns the number of rows that it matched, even unchanged ones', async () => {
  const rows = ['x', 'y'].map((label) => ({ label, weight: 1n }))
  await parcels().insertInto('parcels').values(rows).execute()
  const update = parcels()
    .updateTable('parcels')
    .set({ weight: 1n })
    .where('label', 'in', ['x', 'y'])
  expect((await update.executeTakeFirst()).numUpdatedRows).toBe(2n)
  const none = parcels().deleteFrom('parcels').where('label', '=', 'z')
  expect((await none.executeTakeFirst()).numDeletedRows).toBe(0n)
})
