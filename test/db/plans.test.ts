/** The plans of frequent statements, by `explain`: each reads by a whole index. Lists: see queries. */
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { createIdempotency } from '../../src/idempotency/store.ts'
import { createKey, findKeys, recordUses } from '../../src/keys/store.ts'
import { petStore } from '../../src/petstore/pets/store.ts'
import { createStores } from '../../src/petstore/stores.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { storePets } from '../support/pets.ts'
import { openSql, type Sql } from '../support/sql.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const deadline = new Deadline(Number.POSITIVE_INFINITY)

let database: TestDatabase
let statements: Statements
let db: Database
let sql: Sql
beforeAll(async () => {
  database = await newDatabase()
  statements = await watchStatements(database.url)
  db = await connect(database.url)
  await migrate(db)
  sql = await openSql(database.url)
  const pet = { name: 'Rex', categoryId: 1n, status: 'sold' } as const
  await storePets(sql, Array(5_000).fill(pet))
})
afterAll(async () => {
  await db.destroy()
  await sql.close()
  await statements.close()
  await database.remove()
})

test.each(['fresh from loading', 'with statistics'])('several pets, %s', async (state) => {
  if (state === 'with statistics') {
    await sql(engine === 'mysql' ? 'analyze table pets' : 'analyze')
  }
  const asked = await sent(/^select\b.*\bfrom\W+pets\b/is, () =>
    Promise.all([7n, 77n, 2_777n].map((id) => petStore(db).get(id, deadline))),
  )
  expect(await Promise.all(asked.map(planOf))).toEqual([
    engine === 'mysql' ? 'search PRIMARY 8' : 'SEARCH pets USING PRIMARY (rowid=?)',
  ])
})

test('keys and idempotency keys', async () => {
  const made = await Promise.all(
    Array.from({ length: 50 }, (_, index) => createKey(db, `${index}`)),
  )
  const hashes = (await sql('select hash from api_keys limit 3')).map(({ hash }) => `${hash}`)
  const idempotency = createIdempotency(db, createStores, 60_000, pino({ level: 'silent' }))
  const once = (key: string) =>
    idempotency.once({ apiKeyId: 1n, key, operation: 'x', input: {} }, deadline, async () => ({
      id: 1n,
    }))
  for (let serial = 0; serial < 200; serial++) await once(`${serial}`)
  const asked = await sent(/^(select|update)\b.*\b(api|idempotency)_keys\b/is, async () => {
    await findKeys(db, hashes)
    await recordUses(db, new Map(made.slice(0, 3).map(({ id }) => [id, Date.now()])))
    await once('new')
  })
  idempotency.stop()
  const plans = await Promise.all(asked.map(planOf))
  const ofKey = '(api_key_id=? AND key_hash=?)'
  expect(plans).toEqual(
    engine === 'mysql'
      ? [
          'search hash 256',
          'search PRIMARY 8',
          'const idempotency_keys_key 264',
          'search idempotency_keys_key 264',
        ]
      : [
          'SEARCH api_keys USING INDEX (hash=?)',
          'SEARCH api_keys USING PRIMARY (rowid=?)',
          `SEARCH idempotency_keys USING INDEX ${ofKey}`,
          `SEARCH idempotency_keys USING INDEX ${ofKey}`,
        ],
  )
})

/** Returns the statements that match the pattern, and that `ask` sends. */
async function sent(pattern: RegExp, ask: () => Promise<unknown>): Promise<string[]> {
  const before = (await statements.like(pattern)).length
  await ask()
  return (await statements.like(pattern)).slice(before)
}

/** Returns the steps of a plan, also those that sort. */
async function planOf(statement: string): Promise<string> {
  const rows = await sql(
    `explain ${engine === 'mysql' ? 'format=traditional' : 'query plan'} ${statement}`,
  )
  return rows.map(engine === 'mysql' ? stepOfMysql : stepOfSqlite).join('; ')
}

/** Returns the kind of access, the index, and the number of its bytes that are used. */
function stepOfMysql({ type, key, key_len, Extra }: Record<string, unknown>): string {
  const found = type === 'ref' || type === 'range' ? 'search' : type
  const sorted = /filesort|temporary/.exec(`${Extra}`) ?? []
  return [found, key, key_len, ...sorted].join(' ')
}

// The index of a constraint has a generated name.
const stepOfSqlite = ({ detail }: Record<string, unknown>): string =>
  `${detail}`.replace('INTEGER PRIMARY KEY', 'PRIMARY').replace(/INDEX \w+/, 'INDEX')
