/** Look-ups of rows by their keys, with one query for all concurrent calls. */
import type { Compilable } from 'kysely'
import { reads, type Value } from '../statement.ts'
import type { Database } from '../tables.ts'
import { type Coalesced, coalesce } from './coalesce.ts'

/** Maximum number of keys in one query. */
const MAX_KEYS = 100

interface LookUp<Key, Row> {
  /** Returns the query for the rows of several keys, each of which has its own `value`: see `reads`. */
  select(db: Database, keys: Value<Key>[]): Compilable<Row>
  /** Returns the name of a key or of a row: a row has the name of its key. */
  nameOf(keyOrRow: Key | Row): bigint | string
}

/**
 * Returns a function that returns the row of a key, or undefined. It throws DatabaseUnavailableError
 * after three attempts, and the reason of the deadline.
 */
export function lookUp<Key, Row extends object>({
  select,
  nameOf,
}: LookUp<Key, Row>): Coalesced<Key, Row | undefined> {
  const read = reads<Key, Row>(select)
  const find = coalesce<Key, Row | undefined>({
    maxSize: () => MAX_KEYS,
    nameOf,
    async run(db, keys, deadline) {
      if (keys.length === 1) return [(await read(db, keys, deadline))[0]]
      // Only powers of two, so that there are few queries. The first key takes the place of those that lack.
      const size = Math.min(2 ** Math.ceil(Math.log2(keys.length)), MAX_KEYS)
      const filled = Array.from({ length: size }, (_, index) => keys[index] ?? (keys[0] as Key))
      const rows = await read(db, filled, deadline)
      const names = rows.map(nameOf)
      return keys.map((key) => rows[names.indexOf(nameOf(key))])
    },
  })
  return async (db, key, deadline) => {
    // Callers with the same key share the row. Each has a copy, which it may change.
    const row = await find(db, key, deadline)
    return row && { ...row }
  }
}
