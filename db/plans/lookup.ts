/** Look-ups of a row each, with one query for all concurrent calls. */
import type { Kysely, SelectExpression, Selection } from 'kysely'
import type { Builder, Query } from '../builder.ts'
import type { StatementPlan, Value } from '../plan.ts'
import type { Tables, WithId } from '../tables.ts'

/** Maximum number of look-ups in one query. A hundred share the way to the database: more would gain next to nothing. */
const MAX_LOOK_UPS = 100

interface LookUp<Input, Row> {
  /** Returns the query for the rows of several inputs, each of which has its own `value`: see `StatementPlan`. */
  select(db: Builder, values: Value<Input>[]): Query<Row>
  /** Returns the identity of an input or of a row: a row has that of its input. */
  identityOf(inputOrRow: Input | Row): bigint | string
}

/** Returns the plan that reads the row of an input, or undefined. */
export function lookUp<Input, Row extends object>({
  select,
  identityOf,
}: LookUp<Input, Row>): StatementPlan<Input, Row | undefined, Row | undefined> {
  return {
    use: 'read',
    maxSize: MAX_LOOK_UPS,
    identityOf,
    isPadded: true,
    build: select,
    split(result, inputs) {
      const rows: Row[] = result.rows
      if (inputs.length === 1) return [rows[0]]
      const identities = rows.map(identityOf)
      return inputs.map((input) => rows[identities.indexOf(identityOf(input))])
    },
    output: (row) => row && { ...row }, // for each of several callers
  }
}

/** Returns the plan that reads a row of a table by its id, or undefined. The row has these columns and the id. */
export const rowById = <Table extends WithId, Column extends SelectExpression<Tables, Table>>(
  table: Table,
  columns: readonly Column[],
) =>
  lookUp<bigint, { id: bigint } & Selection<Tables, Table, Column>>({
    select({ kysely }, ids) {
      // Kysely has no types for a table and columns that are parameters.
      const untyped = kysely as unknown as Kysely<{ rows: { id: bigint } }>
      const rows = untyped
        .selectFrom(table as string as 'rows')
        .select(['id', ...(columns as readonly [])])
      const wanted = ids.map((value) => value((id) => id))
      return rows.where('id', 'in', wanted) as Query<never>
    },
    identityOf: (row) => (typeof row === 'bigint' ? row : row.id),
  })
