/** Look-ups of rows by their keys, with one query for all concurrent calls. */
import type { Compilable, Kysely } from 'kysely'
import type { Plan, Value } from '../plan.ts'
import type { Tables } from '../tables.ts'

/** Maximum number of keys in one query. */
const MAX_KEYS = 100

interface LookUp<Key, Row> {
  /** Returns the query for the rows of several keys, each of which has its own `value`: see `Plan`. */
  select(db: Kysely<Tables>, keys: Value<Key>[]): Compilable<Row>
  /** Returns the name of a key or of a row: a row has the name of its key. */
  nameOf(keyOrRow: Key | Row): bigint | string
}

/** Returns the plan that reads the row of a key, or undefined. */
export function lookUp<Key, Row extends object>({
  select,
  nameOf,
}: LookUp<Key, Row>): Plan<Key, Row | undefined, Row | undefined> {
  return {
    use: 'read',
    maxSize: { inProcess: MAX_KEYS, server: MAX_KEYS },
    nameOf,
    // Only powers of two, so that there are few queries.
    sizeOf: (count) => Math.min(2 ** Math.ceil(Math.log2(count)), MAX_KEYS),
    build: select,
    split(result, keys) {
      const rows: Row[] = result.rows
      if (keys.length === 1) return [rows[0]]
      const names = rows.map(nameOf)
      return keys.map((key) => rows[names.indexOf(nameOf(key))])
    },
    output: (row) => row && { ...row },
  }
}
