/** The cost of queries: with 100,000 pets, a page reads only its own entries of an index. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { type Status, storePets } from '../support/pets.ts'
import { type Service, startService } from '../support/service.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const COUNT = 100_000
const BATCH = 5_000

let service: Service
let statements: Statements
beforeAll(async () => {
  const database = await newDatabase()
  statements = await watchStatements(database.url)
  service = await startService({}, { database })
  // Few pets are sold, and only the last ones are pending.
  const status = (id: number): Status =>
    id % 1_000 === 0 ? 'sold' : id > COUNT - 50 ? 'pending' : 'available'
  for (let first = 1; first <= COUNT; first += BATCH) {
    const pets = Array.from({ length: BATCH }, (_, index) => ({
      name: `Pet ${first + index}`,
      categoryId: 1n,
      status: status(first + index),
    }))
    await storePets(service.sql, pets)
  }
})
afterAll(async () => {
  await service.stop()
  await statements.close()
})

// [path, pets in the response, index entries: one more, for the next page]
const paths: [path: string, pets: number, entries: number][] = [
  ['/pets', 20, 21],
  ['/pets?limit=1', 1, 2],
  ['/pets?limit=100', 100, 101],
  ['/pets?cursor=50000', 20, 21],
  [`/pets?cursor=${COUNT - 5}`, 5, 21],
  [`/pets?cursor=${COUNT}`, 0, 21],
  ['/pets?status=available', 20, 21],
  ['/pets?status=available&cursor=50000&limit=100', 100, 101],
  [`/pets?status=available&cursor=${COUNT - 10}`, 0, 21],
  ['/pets?status=sold', 20, 21],
  ['/pets?status=sold&limit=100', 100, 101],
  ['/pets?status=sold&cursor=50000', 20, 21],
  ['/pets?status=sold&cursor=99500', 1, 21],
  ['/pets?status=pending', 20, 21],
  ['/pets?status=pending&limit=100', 49, 101],
  ['/pets?status=pending&cursor=50000', 20, 21],
  [`/pets?status=pending&cursor=${COUNT - 10}`, 9, 21],
  ['/pets/77777', 1, 1],
  ['/pets/999999', 0, 1],
]

test.each([['without statistics'], ['with statistics']])(
  '%s',
  { timeout: 60_000 },
  async (state) => {
    if (state === 'with statistics') {
      await service.sql(engine === 'mysql' ? 'analyze table pets' : 'analyze')
    }
    const before = (await queries()).length
    for (const [path, count] of paths) {
      const { body } = await service.rest('GET', path)
      expect(Array.isArray(body) ? body.length : Object.hasOwn(body as object, 'id') ? 1 : 0).toBe(
        count,
      )
    }
    const sent = (await queries()).slice(before)
    expect(sent, 'one query for each').toHaveLength(paths.length)
    for (const [index, [path, , entries]] of paths.entries()) {
      const query = String(sent[index])
      if (engine === 'mysql') {
        // One more read finds the end.
        expect(await entriesRead(query), path).toBeLessThanOrEqual(entries + 1)
      } else {
        expect(await plan(query), path).toMatch(planOf(path))
      }
    }
  },
)

/** Returns the queries for pets so far. */
const queries = () => statements.like(/^select\b.*\bfrom\W+pets\b/is)

/** Returns how many entries of an index or a table MySQL reads for a query, by its counters. */
async function entriesRead(query: string): Promise<number> {
  const { sql } = service
  const count = async () => {
    const rows = await sql("show session status like 'Handler_read%'")
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0)
  }
  const [first, second] = [await count(), await count()]
  await sql(query)
  return (await count()) - second - (second - first) // without the reads for the counters
}

/** Returns SQLite's plan of a query. */
async function plan(query: string): Promise<string> {
  const rows = await service.sql(`explain query plan ${query}`)
  return rows.map(({ detail }) => detail).join('; ')
}

/** Returns the plan that begins at the first row of the page, without sorting and without other rows. */
function planOf(path: string): RegExp {
  const { searchParams, pathname } = new URL(path, 'http://x')
  if (pathname !== '/pets') return /^SEARCH pets USING INTEGER PRIMARY KEY \(rowid=\?\)$/
  const cursor = searchParams.has('cursor')
  if (searchParams.has('status')) {
    const range = cursor ? ' AND (id|rowid)>\\?' : ''
    return new RegExp(`^SEARCH pets USING INDEX \\w+ \\(status=\\?${range}\\)$`)
  }
  return cursor ? /^SEARCH pets USING INTEGER PRIMARY KEY \(rowid>\?\)$/ : /^SCAN pets$/
}
