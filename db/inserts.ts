/** New rows: those that meet are one statement, or one transaction, and each gets its own id. */
import type { Insertable } from 'kysely'
import { isSqlite } from './columns.ts'
import type { Deadline } from './deadline.ts'
import { isRowRefused, NoConsecutiveIdsError } from './errors.ts'
import { gather } from './gather.ts'
import { retry } from './retry.ts'
import type { Statement } from './statement.ts'
import type { Database, Tables } from './tables.ts'
import { inTransaction } from './transaction.ts'

const MAX_ROWS_PER_STATEMENT = 200

/**
 * Inserts a row and gives its id. In a transaction it is a plain insert; otherwise it may share a
 * statement or a transaction with others, none of which it takes along when it is refused, and is
 * tried again if it provably had no effect. Throws DuplicateError, DatabaseUnavailableError.
 */
export type Insert<Row> = (row: Row, deadline: Deadline, transaction?: Database) => Promise<bigint>

/** Inserts into a table. `columns` gives a row's columns: of every row all, and in the same order. */
export function inserts<Row, Table extends keyof Tables>(
  db: Database,
  table: Table,
  columns: (row: Row) => Insertable<Tables[Table]>,
): Insert<Row> {
  const compiled = new Map<number, Statement>()

  // Compiled once for each number of rows, as Kysely compiles: row by row, the columns as given.
  function insert(executor: Database, rows: Row[], deadline: Deadline) {
    const values = rows.map(columns)
    const parameters = values.flatMap((row) => Object.values(row))
    let query = compiled.get(rows.length)
    if (!query) {
      query = db.insertInto(table).values(values).compile()
      compiled.set(rows.length, query)
    }
    if (parameters.length !== query.parameters.length) throw new Error('A row lacks a column')
    const needsConsecutiveIds = rows.length > 1
    const complete: Statement = { ...query, parameters, deadline, needsConsecutiveIds }
    return executor.executeQuery(complete)
  }

  async function insertOne(executor: Database, row: Row, deadline: Deadline): Promise<bigint> {
    const { insertId } = await insert(executor, [row], deadline)
    if (insertId === undefined) throw new Error(`The database gave no id for a row of ${table}`)
    return insertId
  }

  let isGrouped = true
  // Gives undefined to those that are to be tried alone.
  const insertGrouped = gather<Row, bigint | undefined>({
    most: MAX_ROWS_PER_STATEMENT,
    lane: () => '',
    async ask(rows, deadline) {
      const [only] = rows
      if (only && rows.length === 1) return [await insertOne(db, only, deadline)]
      try {
        const { insertId: first } = await insert(db, rows, deadline)
        return rows.map((_row, index) => first && first + BigInt(index))
      } catch (error) {
        if (error instanceof NoConsecutiveIdsError) isGrouped = false
        // Of any other failure no one knows here whether the rows are there.
        else if (!isRowRefused(error)) throw error
        return rows.map(() => undefined) // one of them was refused, and none inserted
      }
    },
  })

  async function insertShared(row: Row, deadline: Deadline): Promise<bigint> {
    if (isSqlite(db)) return await inTransaction(db, (it) => insertOne(it, row, deadline), deadline)
    const id = isGrouped ? await insertGrouped(row, deadline) : undefined
    return id ?? (await insertOne(db, row, deadline))
  }

  return (row, deadline, transaction) =>
    transaction
      ? insertOne(transaction, row, deadline)
      : retry(() => insertShared(row, deadline), { repeatable: false, deadline })
}
