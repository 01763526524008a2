/** Tables in memory, for the stores of the stand-in: unique values, lists in pages, and changes that can be undone. */
import { DuplicateError } from '../../../db/errors.ts'
import { type Page, type Position, timeCursorOf } from '../../../src/procedure/paging.ts'

/** Takes back one change of a transaction. */
export type Undo = () => void

interface PageQuery {
  limit: number
  cursor?: bigint | Position<Value> | undefined
}

interface List<Row> {
  where?(row: Row): boolean
  /** A text, an integer or a Date that the list is ordered by before the id, as `by` of `pagesBy`. */
  by?: keyof Row
  order?: 'ascending' | 'descending'
}

/** What a list is ordered by before the id, as in the database: a time in milliseconds. It is empty in a list by id. */
type Value = string | bigint

/** Rows whose ids are 1, 2, 3, and so on, in the order of their creation. Each change adds its opposite to `undo`. */
export class Table<Row extends { id: bigint }> {
  readonly rows: Row[] = []
  readonly #unique: readonly (keyof Row)[]
  #lastId = 0n

  /** Two rows never have the same value of one of the columns that are `unique`, unless it is null. */
  constructor(initial: Omit<Row, 'id'>[] = [], unique: readonly (keyof Row)[] = []) {
    this.#unique = unique
    for (const row of initial) this.insert(row)
  }

  get(id: bigint): Row | undefined {
    return this.rows.find((row) => row.id === id)
  }

  /** Adds a row, and returns its id. Throws DuplicateError if a unique value is taken. */
  insert(values: Omit<Row, 'id'>, undo?: Undo[]): bigint {
    const row = { ...values, id: this.#lastId + 1n } as Row // with the id, it has all columns
    this.#refuseTaken(row)
    this.#lastId = row.id
    this.rows.push(row)
    undo?.push(() => this.rows.splice(this.rows.indexOf(row), 1))
    return row.id
  }

  /** Changes a row of the table. Throws DuplicateError if a unique value is taken. */
  update(row: Row, change: Partial<Row>, undo?: Undo[]): void {
    this.#refuseTaken({ ...row, ...change })
    const before = { ...row }
    Object.assign(row, change)
    undo?.push(() => Object.assign(row, before))
  }

  /** Removes a row of the table. */
  remove(row: Row, undo?: Undo[]): void {
    const index = this.rows.indexOf(row)
    this.rows.splice(index, 1)
    undo?.push(() => this.rows.splice(index, 0, row))
  }

  /** Returns a page of the rows, as `pages` and `pagesBy` of db/plans/pages.ts. */
  page({ limit, cursor }: PageQuery, { where = () => true, by, order }: List<Row> = {}): Page<Row> {
    const positionOf = (row: Row) => ({
      id: row.id,
      value: by === undefined ? '' : comparable(row[by]),
    })
    const seen = typeof cursor === 'bigint' ? { id: cursor, value: '' } : cursor
    const sign = order === 'descending' ? -1 : 1
    const rows = this.rows
      .filter((row) => where(row) && (!seen || sign * compare(positionOf(row), seen) > 0))
      .sort((one, other) => sign * compare(positionOf(one), positionOf(other)))
    const items = rows.slice(0, limit)
    const last = rows.length > limit ? items.at(-1) : undefined
    return { items, next: last && (by === undefined ? last.id : cursorOf(last[by], last.id)) }
  }

  #refuseTaken(row: Row): void {
    for (const column of this.#unique) {
      const isTaken = (other: Row) => other.id !== row.id && other[column] === row[column]
      if (row[column] !== null && this.rows.some(isTaken))
        throw new DuplicateError(`A row has this value of ${String(column)}`)
    }
  }
}

const comparable = (value: unknown): Value =>
  value instanceof Date
    ? BigInt(value.getTime())
    : typeof value === 'bigint'
      ? value
      : String(value)

/** Returns the cursor of the page after a row: see `textCursor`, `timeCursor` and `int64Cursor`. */
function cursorOf(value: unknown, id: bigint): string {
  if (value instanceof Date) return timeCursorOf(BigInt(value.getTime()), id)
  return typeof value === 'bigint' ? `${value} ${id}` : `${id} ${value}`
}

/** Compares positions in a list: texts by their code points, as the databases do, then ids. */
function compare(one: Position<Value>, other: Position<Value>): number {
  if (typeof one.value === 'bigint' || typeof other.value === 'bigint') {
    if (one.value !== other.value) return one.value < other.value ? -1 : 1
    return one.id < other.id ? -1 : one.id > other.id ? 1 : 0
  }
  const pointsOf = (text: string) => Array.from(text, (character) => character.codePointAt(0) ?? 0)
  const [points, others] = [pointsOf(one.value), pointsOf(other.value)]
  const at = points.findIndex((point, index) => point !== others[index])
  if (at >= 0) return (points[at] ?? 0) - (others[at] ?? -1)
  if (points.length < others.length) return -1
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0
}
