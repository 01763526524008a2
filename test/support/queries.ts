/** Keeps an eye on the queries that go to a database. */
import type { CompiledQuery, QueryExecutor } from 'kysely'
import type { Database } from '../../db/tables.ts'

/** The same database, and a list to which every query is added when it is executed. */
export function watch(db: Database): { db: Database; queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = []
  note(db.getExecutor(), queries)
  return { db, queries }
}

// Also the queries of those executors that transactions have.
function note(executor: QueryExecutor, queries: CompiledQuery[]): QueryExecutor {
  const execute = executor.executeQuery.bind(executor)
  const withConnection = executor.withConnectionProvider.bind(executor)
  executor.executeQuery = (query, options) => {
    queries.push(query)
    return execute(query, options)
  }
  executor.withConnectionProvider = (provider) => note(withConnection(provider), queries)
  return executor
}
