/** Columns and indexes that migrations add to tables, even if they run twice or on two nodes. */
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { addColumn, addIndex, createTable } from '../../db/columns.ts'
import { connect } from '../../db/connect.ts'
import type { Database } from '../../db/database.ts'
import { DuplicateError } from '../../db/errors.ts'
import { execute } from '../../db/statement.ts'
import { engine, newDatabase } from '../support/database.ts'

const database = await newDatabase()
const nodes = [await connect(database.url), await connect(database.url)] as const
const [db] = nodes
await createTable(db, 'parcels', (table) =>
  table.addColumn('label', 'varchar(40)', (column) => column.notNull()),
)
afterAll(async () => {
  for (const node of nodes) await node.destroy()
  await database.remove()
})

// No type contains the table of this test.
const parcels = db.kysely.withTables<{ parcels: { label: string; weight: bigint } }>()
const add = (label: string, weight: bigint) =>
  execute(db, parcels.insertInto('parcels').values({ label, weight }))
const remove = (label: string) =>
  execute(db, parcels.deleteFrom('parcels').where('label', '=', label))
/** Runs a migration on two nodes concurrently, and then again; on SQLite once, in one transaction with its record. */
async function onAllNodes(migrate: (db: Database) => Promise<void>): Promise<void> {
  if (engine === 'mysql') await Promise.all(nodes.map(migrate))
  await migrate(db)
}

test('a migration that runs twice adds a column once', async () => {
  await onAllNodes((db) => addColumn(db, 'parcels', 'weight', 'bigint'))
  await add('a', 7n)
  const { rows } = await execute(db, parcels.selectFrom('parcels').select('weight'))
  expect(rows).toEqual([{ weight: 7n }])
})

test('a migration that runs twice adds an index once, identified by its name', async () => {
  await onAllNodes((db) => addIndex(db, 'parcels', 'parcels_weight', ['weight']))
  await onAllNodes((db) => addIndex(db, 'parcels', 'parcels_label', ['label'], { unique: true }))
  await expect(add('a', 8n)).rejects.toBeInstanceOf(DuplicateError)
})

test('the id of a row that was deleted is not assigned again', async () => {
  const { insertId: id = 0n } = await add('gone', 1n)
  await remove('gone')
  const { insertId: next } = await add('gone', 1n)
  expect(next).toBeGreaterThan(id)
  await remove('gone')
})

test('other errors are thrown', async () => {
  await expect(addColumn(db, 'nowhere', 'weight', 'bigint')).rejects.toThrow()
  await add('b', 7n)
  await expect(
    addIndex(db, 'parcels', 'parcels_unlike', ['weight'], { unique: true }),
  ).rejects.toBeInstanceOf(DuplicateError)
})

test('integers are bigints in columns of any size, in counts and in comparisons', async () => {
  const types = ['tinyint', 'smallint', 'mediumint', 'int', 'bigint']
  const columns = sql.raw(types.map((type) => `of_${type} ${type}`).join())
  await execute(db, sql`create table sizes (${columns})`)
  await execute(db, sql`insert into sizes values (1, 2, 3, 4, 5), (null, null, null, null, null)`)
  const rows = types.map((type, index) => [`of_${type}`, BigInt(index + 1)])
  expect((await execute(db, sql`select * from sizes`)).rows).toEqual([
    Object.fromEntries(rows),
    Object.fromEntries(types.map((type) => [`of_${type}`, null])),
  ])
  const computed = sql`select count(*) as number, max(of_int) as greatest, 1 = 1 as equal,
    cast(sum(of_bigint) as signed) as total from sizes`
  expect((await execute(db, computed)).rows).toEqual([
    { number: 2n, greatest: 4n, equal: 1n, total: 5n },
  ])
})

test('a statement returns the number of rows that it matched, even unchanged ones', async () => {
  const rows = ['x', 'y'].map((label) => ({ label, weight: 1n }))
  await execute(db, parcels.insertInto('parcels').values(rows))
  const update = parcels.updateTable('parcels').set({ weight: 1n }).where('label', 'in', ['x', 'y'])
  expect((await execute(db, update)).numAffectedRows).toBe(2n)
  expect((await remove('z')).numAffectedRows).toBe(0n)
})
