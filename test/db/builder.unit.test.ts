/** Kysely builds statements, and executes none: one that ran past the runner would know no deadline and no transaction. */
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import type { Database } from '../../db/database.ts'

const pets = ({ kysely }: Database) => kysely.selectFrom('pets').select('id')

test.each<[string, (db: Database) => Promise<unknown>]>([
  ['a query', (db) => pets(db).execute()],
  ['the first row of a query', (db) => pets(db).executeTakeFirst()],
  ['a template', (db) => sql`select 1`.execute(db.kysely)],
  ['a table', ({ kysely }) => kysely.schema.createTable('t').addColumn('id', 'integer').execute()],
  ['a transaction', ({ kysely }) => kysely.transaction().execute(async () => {})],
  ['a controlled transaction', ({ kysely }) => kysely.startTransaction().execute()],
  ['a connection', ({ kysely }) => kysely.connection().execute(async () => {})],
  ['a stream', (db) => pets(db).stream().next()],
  ['a plan', (db) => pets(db).explain()],
  ['the tables', ({ kysely }) => kysely.introspection.getTables()],
])('%s that Kysely executes is refused, and the error says how it is run', async (_, run) => {
  for (const url of ['sqlite:./none.db', 'mysql://localhost/none']) {
    await using db = await connect(url)
    await expect(run(db)).rejects.toThrow(/^Kysely only builds .*execute\(db, query, deadline\)/)
  }
})
