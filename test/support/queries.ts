/** Keeps an eye on the queries that go to a database. */
import type { CompiledQuery } from 'kysely'
import type { Database } from '../../db/tables.ts'

/** The same database, and a list to which every query is added when it is made. */
export function watch(db: Database): { db: Database; queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = []
  const executor = db.getExecutor()
  const watched = db.withPlugin({
    transformQuery({ node, queryId }) {
      queries.push(executor.compileQuery(node, queryId))
      return node
    },
    transformResult: async ({ result }) => result,
  })
  return { db: watched, queries }
}
