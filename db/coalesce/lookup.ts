/** Look-ups of rows by their keys, with one query for all concurrent calls. */
import type { Compilable } from 'kysely'
import { retry } from '../retry.ts'
import { type Execute, statement, type Value } from '../statement.ts'
import type { Database } from '../tables.ts'
import { type Coalesced, coalesce } from './coalesce.ts'

/** Maximum number of keys in one query. */
const MAX_KEYS = 100

interface LookUp<Key, Row> {
  /** Returns the query for the rows of several keys, each of which has its own `value`. */
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
  const statements = new Map<number, Execute<Key[], Row>>()

  const compile = (size: number) =>
    statement<Key[], Row>((db, value) => {
      // If there are fewer keys, the first one takes the place of the others.
      const keyAt =
        (index: number): Value<Key> =>
        (read) =>
          value((keys) => read(keys[index] ?? (keys[0] as Key)))
      return select(
        db,
        Array.from({ length: size }, (_, index) => keyAt(index)),
      )
    })

  const find = coalesce<Key, Row | undefined>({
    maxSize: MAX_KEYS,
    nameOf,
    async run(db, keys, deadline) {
      // Only powers of two, so that there are few statements.
      const size = Math.min(2 ** Math.ceil(Math.log2(keys.length)), MAX_KEYS)
      const execute = statements.get(size) ?? compile(size)
      statements.set(size, execute)
      const read = () => execute(db, keys, deadline)
      const { rows } = await retry(read, { repeatable: true, deadline })
      if (keys.length === 1) return [rows[0]]
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
