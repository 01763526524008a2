/** Look-ups of rows by their keys, with one query for all concurrent calls. */
import type { Builder, Query } from '../builder.ts'
import type { StatementPlan, Value } from '../plan.ts'

/** Maximum number of keys in one query. */
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
    maxSize: { inProcess: MAX_KEYS, server: MAX_KEYS },
    identityOf,
    // Only powers of two, so that there are few queries.
    roomFor: (count) => Math.min(2 ** Math.ceil(Math.log2(count)), MAX_KEYS),
    build: select,
    split(result, keys) {
      const rows: Row[] = result.rows
      if (keys.length === 1) return [rows[0]]
      const identities = rows.map(identityOf)
      return keys.map((key) => rows[identities.indexOf(identityOf(key))])
    },
    output: (row) => row && { ...row },
  }
}
