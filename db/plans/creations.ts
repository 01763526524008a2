/** Creations of rows: `insert into pets …`. Concurrent ones share a statement; those with receipts do more, see keyed.ts. */
import type { Insertable, InsertObject } from 'kysely'
import type { Builder } from '../builder.ts'
import type { Database } from '../database.ts'
import type { WithDeadline } from '../deadline.ts'
import { RejectedStatementError } from '../errors.ts'
import type { StatementPlan, Value } from '../plan.ts'
import type { Tables, WithId } from '../tables.ts'
import { type ReceiptMaker, withReceipts } from './keyed.ts'

/** Maximum number of rows of a statement. They share a commit: more would gain next to nothing, and lock for longer. */
const MAX_ROWS = 200

/** Returns the columns of a row, with a `value` for each that differs between rows: a column that a row may lack is `null`. */
type Columns<Row, Table extends WithId> = (
  value: Value<Row>,
  db: Builder,
) => InsertObject<Tables, Table>

/**
 * Returns the plan that inserts a row into a table, and returns its id. A row that the database rejects does not
 * affect the other rows of its statement.
 */
export function inserts<Row, Table extends WithId>(
  table: Table,
  columns: Columns<Row, Table>,
): StatementPlan<Row, bigint, bigint> {
  return {
    use: 'write',
    maxSize: MAX_ROWS,
    needsConsecutiveIds: true,
    build: (db, values) =>
      db.kysely.insertInto(table).values(values.map((value) => columns(value, db))),
    split({ insertId }, rows) {
      if (insertId === undefined)
        throw new Error(`The database returned no id for a row of ${table}`)
      return rows.map((_row, index) => insertId + BigInt(index))
    },
    output: (id) => id,
    // After any other error, the rows may have been inserted.
    blamesOne: (error) => error instanceof RejectedStatementError,
  }
}

/** How a store creates rows of a kind: `create` of src/procedure/write.ts inserts one by it. */
export interface Creation<Input, Output> {
  /** Returns the output of a row, by its id and the input. */
  output(id: bigint, input: Input): Output
  /** Inserts a row, and returns its id. Throws DuplicateError, DatabaseUnavailableError, and the reason of the deadline. */
  insert(call: WithDeadline, input: Input): Promise<bigint>
  /**
   * Inserts a row and its receipt in one transaction, by one attempt, and returns the output that `receiptMaker.make` has
   * made. Throws as `insert`, and KeyTakenError if a receipt of the same key was stored meanwhile. A store in memory has
   * no receipts.
   */
  insertWithReceipt?<Receipt extends object>(
    call: WithDeadline,
    input: Input,
    receiptMaker: ReceiptMaker<Receipt, Output>,
  ): Promise<Output>
}

/** What each column has: the field of the input with this name, or what a function makes of the input. */
type Fields<Input, Table extends WithId, Row = Insertable<Tables[Table]>> = {
  [Column in keyof Row]: NameOf<Input, Row[Column]> | ((input: Input) => Row[Column])
}

/** The names of the fields that have values of this type. */
type NameOf<Input, Type> = {
  [Name in keyof Input & string]: Input[Name] extends Type ? Name : never
}[keyof Input & string]

/**
 * Returns what makes the creation of a store, in a database or a transaction: how a row is inserted into a table, and
 * how the output is made of its id and the input. A row has all these columns: `null` if it lacks one. What no field and
 * no function of the input can say, such as the time of the database, needs the other form of `columns`: see `inserts`.
 */
export function creation<Input, Output, Table extends WithId>(
  table: Table,
  columns: Fields<NoInfer<Input>, Table> | Columns<Input, Table>,
  output: (id: bigint, input: Input) => Output,
): (db: Database) => Creation<Input, Output> {
  const insertPlan = inserts<Input, Table>(
    table,
    typeof columns === 'function' ? columns : columnsOf(columns),
  )
  const keyedPlan = withReceipts<Input, Output>(insertPlan)
  return (db) => ({
    output,
    insert: ({ deadline }, input) => db.runner.run(insertPlan, input, deadline),
    insertWithReceipt: ({ deadline }, input, receiptMaker) =>
      db.runner.run(keyedPlan, { input, receiptMaker }, deadline),
  })
}

/** Returns the columns with a `value` for each. */
const columnsOf =
  <Input, Table extends WithId>(fields: Fields<Input, Table>): Columns<Input, Table> =>
  (value) => {
    const columns = Object.entries<FieldOf<Input>>(fields)
    // `Fields` has checked the names and the types.
    return Object.fromEntries(columns.map(([name, of]) => [name, placeFor(value, of)])) as never
  }

/** Returns a `value` for each of these fields, for columns of the same names. */
export const valuesOf = <Input, Name extends keyof Input & string>(
  value: Value<Input>,
  ...names: Name[]
) => Object.fromEntries(names.map((name) => [name, placeFor(value, name)])) as Pick<Input, Name>

/** The name of a field, or a function of the input. */
type FieldOf<Input> = keyof Input | ((input: Input) => unknown)

const placeFor = <Input>(value: Value<Input>, of: FieldOf<Input>): unknown =>
  value(typeof of === 'function' ? of : (input) => input[of])
