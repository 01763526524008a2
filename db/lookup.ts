/** Rows by their keys: one query for the keys of all concurrent callers. */
import type { Compilable } from 'kysely'
import { type Ask, gather } from './gather.ts'
import { retry } from './retry.ts'
import { type Execute, statement, type Value } from './statement.ts'
import type { Database } from './tables.ts'

/** Keys in one query at most. */
const MAX_KEYS = 100

interface LookUp<Key, Row> {
  /** The query for the rows of several keys, each of which is put in by its own `value`. */
  select(db: Database, keys: Value<Key>[]): Compilable<Row>
  /** What is equal for a key and the row that it finds, and for no others. */
  nameOf(keyOrRow: Key | Row): bigint | string
}

/**
 * A function that returns the row of a key, or undefined. Throws DatabaseUnavailableError, after
 * three attempts.
 */
export function lookUp<Key, Row extends object>({
  select,
  nameOf,
}: LookUp<Key, Row>): Ask<Key, Row | undefined> {
  const statements = new Map<number, Execute<Key[], Row>>()

  const compile = (size: number) =>
    statement<Key[], Row>((db, value) => {
      // Where there are fewer keys, the first one fills the rest.
      const keys = Array.from(
        { length: size },
        (_, index): Value<Key> =>
          (read) =>
            value((keys) => read(keys[index] ?? (keys[0] as Key))),
      )
      return select(db, keys)
    })

  return gather<Key, Row | undefined>({
    most: MAX_KEYS,
    lane: () => '',
    async ask(db, keys, deadline) {
      // Statements for powers of two only: few to compile, and few for the database to know.
      const size = Math.min(2 ** Math.ceil(Math.log2(keys.length)), MAX_KEYS)
      const execute = statements.get(size) ?? compile(size)
      statements.set(size, execute)
      const ask = () => execute(db, keys, deadline)
      const { rows } = await retry(ask, { repeatable: true, deadline })
      if (keys.length === 1) return [rows[0]]
      const found = new Map(rows.map((row) => [nameOf(row), row]))
      return keys.map((key) => found.get(nameOf(key)))
    },
  })
}
