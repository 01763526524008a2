/** New rows: those that meet are one statement, or one transaction, and each gets its own id. */
import type { Insertable } from 'kysely'
import type { Deadline } from './deadline.ts'
import { isRowRefused, NoConsecutiveIdsError } from './errors.ts'
import { gather, isShared } from './gather.ts'
import { perDatabase } from './per-database.ts'
import { retry } from './retry.ts'
import type { Statement } from './statement.ts'
import type { Database, Tables } from './tables.ts'

const MAX_ROWS_PER_STATEMENT = 200

/**
 * Inserts a row and returns its id. In a transaction it is a plain insert. Otherwise it may share a
 * statement or a transaction with others, none of which it takes along when it is refused, and is
 * tried again if it provably had no effect. Throws DuplicateError, DatabaseUnavailableError.
 */
export type Insert<Row> = (db: Database, row: Row, deadline: Deadline) => Promise<bigint>

/** Inserts into a table. `columns` returns a row's columns: of every row all, and in the same order. */
export function inserts<Row, Table extends keyof Tables>(
  table: Table,
  columns: (row: Row) => Insertable<Tables[Table]>,
): Insert<Row> {
  const statements = perDatabase(() => new Map<number, Statement>())
  const grouping = perDatabase(() => ({ isPossible: true }))

  // Compiled once for each number of rows, as Kysely compiles: row by row, the columns as given.
  function insert(db: Database, rows: Row[], deadline: Deadline) {
    const compiled = statements(db)
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
    return db.executeQuery(complete)
  }

  async function insertOne(db: Database, row: Row, deadline: Deadline): Promise<bigint> {
    const { insertId } = await insert(db, [row], deadline)
    if (insertId === undefined) throw new Error(`The database gave no id for a row of ${table}`)
    return insertId
  }

  // Gives undefined to those that are to be tried alone.
  const insertGrouped = gather<Row, bigint | undefined>({
    most: MAX_ROWS_PER_STATEMENT,
    lane: () => '',
    async ask(db, rows, deadline) {
      const [only] = rows
      if (only && rows.length === 1) return [await insertOne(db, only, deadline)]
      try {
        const { insertId: first } = await insert(db, rows, deadline)
        return rows.map((_row, index) => first && first + BigInt(index))
      } catch (error) {
        if (error instanceof NoConsecutiveIdsError) grouping(db).isPossible = false
        // Of any other failure no one knows here whether the rows are there.
        else if (!isRowRefused(error)) throw error
        return rows.map(() => undefined) // one of them was refused, and none inserted
      }
    },
  })

  async function insertShared(db: Database, row: Row, deadline: Deadline): Promise<bigint> {
    const id = grouping(db).isPossible ? await insertGrouped(db, row, deadline) : undefined
    return id ?? (await insertOne(db, row, deadline))
  }

  return (db, row, deadline) => {
    if (!db.isTransaction) {
      return retry(() => insertShared(db, row, deadline), { repeatable: false, deadline })
    }
    return isShared(db) ? insertShared(db, row, deadline) : insertOne(db, row, deadline)
  }
}
