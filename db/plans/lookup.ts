/** Look-ups of rows by their keys, with one query for all concurrent calls. */
import type { Kysely, SelectExpression, Selection } from 'kysely'
import type { Builder, Query } from '../builder.ts'
import type { StatementPlan, Value } from '../plan.ts'
import type { Tables, WithId } from '../tables.ts'

/** Maximum number of keys in one query. A hundred share the way to the database: more would gain next to nothing. */
const MAX_KEYS = 100

interface LookUp<Key, Row> {
  /** Returns the query for the rows of several keys, each of which has its own `value`: see `Plan`. */
  select(db: Builder, keys: Value<Key>[]): Query<Row>
  /** Returns the identity of a key or of a row: a row has that of its key. */
  identityOf(keyOrRow: Key | Row): bigint | string
}

/** Returns the plan that reads the row of a key, or undefined. */
export function lookUp<Key, Row extends object>({
  select,
  identityOf,
}: LookUp<Key, Row>): StatementPlan<Key, Row | undefined, Row | undefined> {
  return {
    use: 'read',
    maxSize: MAX_KEYS,
    identityOf,
    isPadded: true,
    build: select,
    split(result, keys) {
      const rows: Row[] = result.rows
      if (keys.length === 1) return [rows[0]]
      const identities = rows.map(identityOf)
      return keys.map((key) => rows[identities.indexOf(identityOf(key))])
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
