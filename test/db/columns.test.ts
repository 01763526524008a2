/** Columns and indexes that migrations add to tables, even if they run twice or on two nodes. */
import { type ColumnDataType, type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addColumn, addIndex, idColumn, tableOptions } from '../../db/columns.ts'
import { connect } from '../../db/connect.ts'
import { DuplicateError } from '../../db/errors.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let nodes: Kysely<unknown>[]
const first = () => nodes[0] as Kysely<unknown>
beforeAll(async () => {
  database = await newDatabase()
  // No type contains the table of this test.
  nodes = (await Promise.all([
    connect(database.url),
    connect(database.url),
  ])) as unknown as Kysely<unknown>[]
  await first()
    .schema.createTable('parcels')
    .addColumn('id', ...idColumn(first()))
    .addColumn('label', 'varchar(40)', (column) => column.notNull())
    .modifyEnd(await tableOptions(first()))
    .execute()
})
afterAll(async () => {
  for (const node of nodes) await node.destroy()
  await database.remove()
})

const parcels = () => first().withTables<{ parcels: { label: string; weight: bigint } }>()
/** Runs a migration on two nodes concurrently, and then again. */
async function onAllNodes(migrate: (db: Kysely<unknown>) => Promise<void>): Promise<void> {
  // On SQLite, migrations of one process run one after another.
  if (engine === 'sqlite') for (const node of nodes) await migrate(node)
  else await Promise.all(nodes.map(migrate))
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

test('other errors are thrown', async () => {
  await expect(addColumn(first(), 'nowhere', 'weight', 'bigint')).rejects.toThrow()
  await expect(addIndex(first(), 'parcels', 'parcels_size', ['size'])).rejects.toThrow()
  await parcels().insertInto('parcels').values({ label: 'b', weight: 7n }).execute()
  await expect(
    addIndex(first(), 'parcels', 'parcels_unlike', ['weight'], { unique: true }),
  ).rejects.toBeInstanceOf(DuplicateError)
})

test('integers are bigints in columns of any size, in counts and in comparisons', async () => {
  const types: ColumnDataType[] = ['smallint', 'integer', 'bigint']
  await types
    .reduce((table, type) => table.addColumn(type, type), first().schema.createTable('sizes'))
    .execute()
  await sql`insert into sizes values (1, 2, 3), (null, null, null)`.execute(first())
  const compared = sql`select count(*) as many, max(${sql.id('integer')}) as greatest,
    1 = 1 as equal, cast(sum(${sql.id('bigint')}) as signed) as total from sizes`
  expect((await sql`select * from sizes`.execute(first())).rows).toEqual([
    { smallint: 1n, integer: 2n, bigint: 3n },
    { smallint: null, integer: null, bigint: null },
  ])
  expect((await compared.execute(first())).rows).toEqual([
    { many: 2n, greatest: 2n, equal: 1n, total: 3n },
  ])
})
