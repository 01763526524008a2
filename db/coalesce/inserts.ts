/** Inserts of rows. Concurrent inserts share a statement, and each returns the id of its row. */
import { type Generated, type InsertObject, isExpression } from 'kysely'
import type { Deadline } from '../deadline.ts'
import { engineOf, oncePerEngine } from '../engine.ts'
import { NoConsecutiveIdsError, RejectedRowError } from '../errors.ts'
import { retry, run } from '../statement.ts'
import type { Database, Tables } from '../tables.ts'
import type { Statement } from '../transaction.ts'
import { coalesce } from './coalesce.ts'

const MAX_ROWS_PER_STATEMENT = 200

/**
 * Inserts a row and returns its id. Outside a transaction, it repeats an attempt that certainly had no
 * effect. Throws DuplicateError, DatabaseUnavailableError, and the reason of the deadline.
 */
export type Insert<Row> = (db: Database, row: Row, deadline: Deadline) => Promise<bigint>

/** The tables whose ids the database assigns. For others, MySQL returns no id. */
type WithId = {
  [Table in keyof Tables]: Tables[Table] extends { id: Generated<bigint> } ? Table : never
}[keyof Tables]

/**
 * Returns the insert into a table. `columns` returns the columns of a row: for every row the same ones in
 * the same order, or the insert throws TypeError. An expression, such as `now(db)`, must be the same for
 * every row. A row that the database rejects does not affect the other rows of its statement.
 */
export function inserts<Row, Table extends WithId>(
  table: Table,
  columns: (row: Row, db: Database) => InsertObject<Tables, Table>,
): Insert<Row> {
  type Values = InsertObject<Tables, Table>
  let names: string | undefined
  const states = oncePerEngine(() => ({
    /** The compiled statement for each number of rows. */
    statements: new Map<number, Statement>(),
    hasConsecutiveIds: true,
  }))

  function valuesOf(row: Row, db: Database): Values {
    const values = columns(row, db)
    // Kysely omits the columns that are undefined.
    const here = Object.keys(values)
      .filter((name) => values[name as never] !== undefined)
      .join()
    names ??= here
    if (here === names) return values
    throw new TypeError(`The rows of ${table} must have the same columns: ${names}, not ${here}`)
  }

  // Returns the id of the first row. Kysely compiles the values row by row, with the columns in their order.
  async function insert(db: Database, rows: Values[], deadline: Deadline): Promise<bigint> {
    const { statements } = states(db)
    const parameters = rows.flatMap((row) =>
      Object.values(row).filter((value) => value !== undefined && !isExpression(value)),
    )
    const query = statements.get(rows.length) ?? db.insertInto(table).values(rows).compile()
    statements.set(rows.length, query)
    const needsConsecutiveIds = rows.length > 1
    const { insertId } = await run(db, { ...query, parameters, deadline, needsConsecutiveIds })
    if (insertId === undefined) throw new Error(`The database returned no id for a row of ${table}`)
    return insertId
  }

  // Returns undefined for rows that must be inserted alone.
  const insertInBatch = coalesce<Values, bigint | undefined>({
    maxSize: () => MAX_ROWS_PER_STATEMENT,
    // The server then inserts the first rows while the service reads the next ones: a twentieth more.
    isEarly: (db) => !engineOf(db).isInProcess,
    async run(db, rows, deadline) {
      const [only] = rows
      if (only && rows.length === 1) return [await insert(db, [only], deadline)]
      try {
        const first = await insert(db, rows, deadline)
        return rows.map((_row, index) => first + BigInt(index))
      } catch (error) {
        if (error instanceof NoConsecutiveIdsError) states(db).hasConsecutiveIds = false
        // After any other error, the rows may have been inserted.
        else if (!(error instanceof RejectedRowError)) throw error
        return rows.map(() => undefined)
      }
    },
  })

  return async (db, row, deadline) => {
    const values = valuesOf(row, db)
    const attempt = async () => {
      const { hasConsecutiveIds } = states(db)
      const id = hasConsecutiveIds ? await insertInBatch(db, values, deadline) : undefined
      return id ?? (await insert(db, [values], deadline))
    }
    return await retry(attempt, { repeatable: false, deadline })
  }
}
