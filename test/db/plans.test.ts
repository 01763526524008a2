/** Frequent statements use a whole index, by `explain`, and a page reads only its own entries of it, also of a join. */
import { expect, test } from 'vitest'
import type { Builder } from '../../db/builder.ts'
import { Deadline } from '../../db/deadline.ts'
import { type Has, pages, pagesBy } from '../../db/plans/pages.ts'
import { createKey, findKey, recordUses } from '../../src/keys/store.ts'
import type { PetStatus } from '../../src/petstore/pets/schema.ts'
import { petStore } from '../../src/petstore/pets/store.ts'
import { engine } from '../support/database.ts'
import { keyedWritesOf, onceOf } from '../support/keyed.ts'
import { migratedForFile } from '../support/migrated.ts'
import { storePets } from '../support/pets.ts'
import { helperStore } from '../visits/helpers/store.ts'
import { up } from '../visits/router.ts'

const COUNT = 5_000
const RARE = BigInt(COUNT - 10)

const deadline = new Deadline(Number.POSITIVE_INFINITY)

const { db, sql, statements } = await migratedForFile()
const pets = petStore(db)
// Nearly all are available, some are pending, and one is sold.
const statusOf = (id: number): PetStatus =>
  id === Number(RARE) ? 'sold' : id % 20 === 0 ? 'pending' : 'available'
const stored = Array.from({ length: COUNT }, (_, index) => ({
  name: `Pet ${index + 1}`,
  categoryId: 1n,
  status: statusOf(index + 1),
}))
await storePets(sql, stored)
const list = (status?: PetStatus, cursor?: bigint) => () =>
  pets.list({ deadline }, { limit: 20, status, cursor })

/** A read of pets: the plan of SQLite, and the type, key and key length of MySQL. */
type Read = [what: string, ask: () => Promise<unknown>, sqlite: string, mysql: string]
const reads: Read[] = [
  ['the first page', list(), 'SCAN pets', 'index PRIMARY 8'],
  [
    'a later page',
    list(undefined, 2_500n),
    'SEARCH pets USING PRIMARY (rowid>?)',
    'search PRIMARY 8',
  ],
  ...(['available', 'pending', 'sold'] as const).flatMap((status) =>
    [undefined, 0n, 2_500n, RARE - 1n, RARE].map((cursor): Read => {
      const [columns, length] = cursor === undefined ? ['', 66] : [' AND id>?', 74]
      const plan = `SEARCH pets USING INDEX (status=?${columns})`
      const what = `a page of ${status} pets after ${cursor}`
      return [what, list(status, cursor), plan, `search pets_status_id ${length}`]
    }),
  ),
  [
    'several pages',
    () => Promise.all([100n, 2_500n, 4_000n].map((cursor) => list(undefined, cursor)())),
    Array(3).fill('SEARCH pets USING PRIMARY (rowid>?)').join('; '),
    Array(3).fill('search PRIMARY 8').join('; '),
  ],
  [
    'several pages of pending pets',
    () => Promise.all([100n, 2_500n, 4_000n].map((cursor) => list('pending', cursor)())),
    Array(3).fill('SEARCH pets USING INDEX (status=? AND id>?)').join('; '),
    Array(3).fill('search pets_status_id 74').join('; '),
  ],
  [
    'one pet',
    () => pets.get({ deadline }, 77n),
    'SEARCH pets USING PRIMARY (rowid=?)',
    'const PRIMARY 8',
  ],
  [
    'several pets',
    () => Promise.all([7n, 77n, 2_777n].map((id) => pets.get({ deadline }, id))),
    Array(3).fill('SEARCH pets USING PRIMARY (rowid=?)').join('; '),
    'search PRIMARY 8',
  ],
]

test.each(['without statistics', 'with statistics'])('pets, %s', async (state) => {
  if (state === 'with statistics') {
    await sql(engine === 'mysql' ? 'analyze table pets' : 'analyze')
  }
  // Reads the log of the server once: it has the statements of all tests and is slow to read.
  const queries = await sent(/^\W*select\b.*\bfrom\W+pets\b/is, async () => {
    for (const [, ask] of reads) await ask()
  })
  const plans: [what: string, plan: string][] = []
  for (const [what, , sqlite, mysql] of reads) {
    const count = engine === 'mysql' ? 1 : sqlite.split('; ').length
    const own = queries.splice(0, count)
    plans.push([what, (await Promise.all(own.map(planOf))).join('; ')])
    if (engine === 'sqlite') continue
    // 20 entries of a page, one for the next page, and one that finds the end.
    const ofEach = what.includes('page') ? 22 : what === 'one pet' ? 2 : 4
    const most = ofEach * mysql.split('; ').length
    for (const query of own) expect(await entriesRead(query), what).toBeLessThanOrEqual(most)
  }
  expect(queries).toEqual([])
  expect(plans).toEqual(
    reads.map(([what, , sqlite, mysql]) => [what, engine === 'mysql' ? mysql : sqlite]),
  )
})

test.each(['without statistics', 'with statistics'])('a join, %s', async (state) => {
  if (state === 'without statistics') {
    await up(db as never)
    const visits = stored.map((_, index) => `(1, '${index}', 0, 0)`)
    await sql(`insert into visits (owner_id, reference, at, urgent) values ${visits.join()}`)
    // One of ten visits has each helper.
    const links = stored.map((_, index) => `(${COUNT - index}, ${index % 10})`)
    await sql(`insert into links (visit_id, helper_id) values ${links.join()}`)
  } else {
    await sql(engine === 'mysql' ? 'analyze table links, visits' : 'analyze')
  }
  const { listVisits } = helperStore(db)
  const list = (cursor?: bigint) => listVisits({ deadline }, { helperId: 3n, limit: 20, cursor })
  const queries = await sent(/^\W*select\b.*\blinks\b/is, async () => {
    expect((await list()).items[0]?.id).toBe(7n)
    expect((await list(2_507n)).items[0]?.id).toBe(2_517n)
  })
  const plans = await Promise.all(queries.map(planOf))
  const visit = engine === 'mysql' ? 'eq_ref PRIMARY 8' : 'SEARCH visits USING PRIMARY (rowid=?)'
  const links =
    engine === 'mysql'
      ? ['search links_helper 8', 'search links_helper 16']
      : ['(helper_id=?)', '(helper_id=? AND visit_id>?)'].map(
          (columns) => `SEARCH links USING COVERING INDEX ${columns}`,
        )
  expect(plans).toEqual(links.map((step) => `${step}; ${visit}`))
  if (engine === 'sqlite') return
  // 21 entries of each table, and one that finds the end.
  for (const query of queries) expect(await entriesRead(query)).toBeLessThanOrEqual(43)
})

test('a list whose order cannot work does not compile', () => {
  type ById = Has<{ limit: number; cursor?: bigint }>
  type ByText = Has<{ limit: number; cursor?: { id: bigint; value: string } }>
  const byId = {
    select: (db: Builder, _: ById) => db.kysely.selectFrom('pets').select('name'),
    item: (pet: object) => pet,
  }
  const byText = { ...byId, select: (db: Builder, _: ByText) => byId.select(db, () => true) }
  const next = () => ''
  pages({ ...byId, id: 'pets.id' })
  // @ts-expect-error: two tables of a join may have such a column
  pages({ ...byId, id: 'id' })
  // @ts-expect-error: a text is no id
  pages({ ...byId, id: 'pets.name' })
  // @ts-expect-error: the query does not read this table
  pages({ ...byId, id: 'api_keys.id' })
  pagesBy({ ...byText, id: 'pets.id', by: 'pets.name', next })
  // @ts-expect-error: the cursor has a text
  pagesBy({ ...byText, id: 'pets.id', by: 'pets.category_id', next })
  const ofVisits = (db: Builder, _: ByText) => db.kysely.selectFrom('visits').select('at')
  const visits = { id: 'visits.id', select: ofVisits, item: byId.item, next } as const
  pagesBy({ ...visits, by: 'visits.reference' })
  // @ts-expect-error: the column may be null
  pagesBy({ ...visits, by: 'visits.note' })
})

test('keys and idempotency keys', async () => {
  const made = await Promise.all(
    Array.from({ length: 50 }, (_, index) => createKey(db, `${index}`)),
  )
  const hashes = (await sql('select hash from api_keys limit 3')).map(({ hash }) => `${hash}`)
  const write = onceOf(keyedWritesOf(db))
  const once = (key: string) =>
    write({ holder: 1n, key, operation: 'x', input: {} }, deadline, async () => ({ id: 1n }))
  for (let serial = 0; serial < 200; serial++) await once(`${serial}`)
  const queries = await sent(/^(select|update)\b.*\b(api|idempotency)_keys\b/is, async () => {
    await Promise.all(hashes.map((hash) => findKey(db, hash, deadline)))
    const ids = made.slice(0, 3).map(({ id }) => id)
    await recordUses(db, ids, deadline)
    await once('new')
  })
  // As the regular removal finds expired keys.
  queries.push('select id from idempotency_keys where created_at < 5 order by created_at limit 100')
  const plans = await Promise.all(queries.map(planOf))
  expect(plans).toEqual(
    engine === 'mysql'
      ? [
          'search hash 256',
          'search PRIMARY 8',
          'const idempotency_keys_key 264',
          'search PRIMARY 8',
          'search idempotency_keys_created_at 8',
        ]
      : [
          ...Array(3).fill('SEARCH api_keys USING INDEX (hash=?)'),
          'SEARCH api_keys USING PRIMARY (rowid=?)',
          'SEARCH idempotency_keys USING INDEX (api_key_id=? AND key_hash=?)',
          'SEARCH idempotency_keys USING PRIMARY (rowid=?)',
          'SEARCH idempotency_keys USING COVERING INDEX (created_at<?)',
        ],
  )
})

/** The statements that match a pattern and are sent during a call. */
async function sent(pattern: RegExp, ask: () => Promise<unknown>): Promise<string[]> {
  const before = (await statements.like(pattern)).length
  await ask()
  return (await statements.like(pattern)).slice(before)
}

/** How many entries of an index or a table MySQL reads for a query, by its counters. */
async function entriesRead(query: string): Promise<number> {
  const count = async () => {
    const rows = await sql("show session status like 'Handler_read%'")
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0)
  }
  const [first, second] = [await count(), await count()]
  await sql(query)
  return (await count()) - second - (second - first) // without the reads for the counters
}

/** The steps of a plan, including those that sort, and the temporary table of a union. */
async function planOf(statement: string): Promise<string> {
  const rows = await sql(
    `explain ${engine === 'mysql' ? 'format=traditional' : 'query plan'} ${statement}`,
  )
  return rows.map(engine === 'mysql' ? stepOfMysql : stepOfSqlite).join('; ')
}

/** The type of access, the index, and the number of its bytes that are used. */
function stepOfMysql({ type, key, key_len, Extra }: Record<string, unknown>): string {
  const found = type === 'ref' || type === 'range' ? 'search' : type
  const sorted = /filesort|temporary/.exec(`${Extra}`) ?? []
  return [found, key, key_len, ...sorted].join(' ')
}

// Normalizes the generated names of indexes and the aliases of the id.
const stepOfSqlite = ({ detail }: Record<string, unknown>): string =>
  `${detail}`
    .replace('INTEGER PRIMARY KEY', 'PRIMARY')
    .replace(/INDEX \w+/, 'INDEX')
    .replace('(status=? AND rowid>?)', '(status=? AND id>?)')
