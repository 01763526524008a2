/** Inserts of rows. Concurrent inserts share a statement, and each returns the id of its row. */
import type { Generated, InsertObject, Kysely } from 'kysely'
import { NoConsecutiveIdsError, RejectedStatementError } from '../errors.ts'
import type { Plan, Value } from '../plan.ts'
import type { Tables } from '../tables.ts'

const MAX_ROWS = 200

/** The tables whose ids the database assigns. For others, MySQL returns no id. */
type WithId = {
  [Table in keyof Tables]: Tables[Table] extends { id: Generated<bigint> } ? Table : never
}[keyof Tables]

/**
 * Returns the plan that inserts a row into a table, and returns its id. `columns` returns the columns of a
 * row, with a `value` for each that differs between rows: a column that a row may lack is `null`. A row that
 * the database rejects does not affect the other rows of its statement.
 */
export function inserts<Row, Table extends WithId>(
  table: Table,
  columns: (value: Value<Row>, db: Kysely<Tables>) => InsertObject<Tables, Table>,
): Plan<Row, bigint, bigint> {
  return {
    use: 'write',
    maxSize: { inProcess: MAX_ROWS, server: MAX_ROWS },
    // The server then inserts the first rows while the service reads the next ones: a twentieth more.
    isEarly: true,
    needsConsecutiveIds: (count) => count > 1,
    build: (db, values) => db.insertInto(table).values(values.map((value) => columns(value, db))),
    split({ insertId }, rows) {
      if (insertId === undefined)
        throw new Error(`The database returned no id for a row of ${table}`)
      return rows.map((_row, index) => insertId + BigInt(index))
    },
    output: (id) => id,
    // After any other error, the rows may have been inserted.
    isOfOne: (error) =>
      error instanceof RejectedStatementError || error instanceof NoConsecutiveIdsError,
  }
}
