/** The order of a list: one or several columns, of which the last one is unique. */

/**
 * A column that orders rows. It must not be null, because rows after a null would be missing. Texts are
 * ordered by code points. Times and decimals are integers (see tables.ts).
 */
export interface OrderedColumn {
  column: string
  type: 'int64' | 'text'
  direction: 'ascending' | 'descending'
  /** Whether the column is unique: required for the last one, unless it is `id`. */
  unique?: true
}

/** The position of a row in an order: its values in the ordered columns. */
export type Position = readonly (bigint | string)[]

/** A page begins after its cursor: the value of the only int64 column, or a position. */
export type Cursor = bigint | Position

/** An order of `orderBy`. Its type allows only cursors of this order. */
export interface Order<Of extends Cursor = Cursor, Column extends string = string> {
  readonly columns: readonly (OrderedColumn & { column: Column })[]
  /** Whether the order is one int64 column, so that its value is the cursor. */
  readonly isPlain: boolean
  /** Returns the cursor of a row, after which the next page begins. */
  readonly cursorOf: (row: Readonly<Record<Column, bigint | string>>) => Of
}

type CursorOf<Columns> = Columns extends readonly [{ type: 'int64' }] ? bigint : Position

/** Returns the order by these columns. Throws TypeError if two rows may have the same position. */
export function orderBy<const Columns extends readonly OrderedColumn[]>(
  columns: Columns,
): Order<CursorOf<Columns>, Columns[number]['column']> {
  const last = columns.at(-1)
  if (!last || !(last.column === 'id' || last.unique)) {
    throw new TypeError('An order must end in a column that is unique: `id`, or `unique: true`')
  }
  const isPlain = columns.length === 1 && last.type === 'int64'
  const valueIn = (
    row: Readonly<Record<string, bigint | string>>,
    { column, type }: OrderedColumn,
  ) => {
    const value = row[column]
    if (typeof value === (type === 'text' ? 'string' : 'bigint')) return value as bigint | string
    throw new TypeError(`An ordered row must have the column ${column} of type ${type}`)
  }
  return {
    columns,
    isPlain,
    cursorOf: (row) =>
      // The compiler does not know that `isPlain` decides between the two types.
      (isPlain
        ? valueIn(row, last)
        : columns.map((column) => valueIn(row, column))) as CursorOf<Columns>,
  }
}

/** Sorts rows by the only column of a plain order. Rows that are in order already take next to no time. */
export function sortPlain<Column extends string>(
  rows: Readonly<Record<Column, bigint | string>>[],
  { columns: [first] }: Order<Cursor, Column>,
): void {
  if (!first) return // an order has a column
  const { column, direction } = first
  const sign = direction === 'ascending' ? 1 : -1
  rows.sort((one, other) => (one[column] < other[column] ? -sign : sign))
}

/** By ascending `id`, the order of creation. */
export const BY_ID = orderBy([{ column: 'id', type: 'int64', direction: 'ascending' }])

/** A page, and the cursor of the next page if there is one. */
export interface Page<Item, Of extends Cursor = Cursor> {
  items: Item[]
  next: Of | undefined
  order: Order<Of>
}

/** Returns the page from the rows of a query for `limit + 1` rows in this order. */
export function pageOf<
  Row extends Record<Column, bigint | string>,
  Of extends Cursor,
  Column extends string,
>(rows: Row[], limit: number, order: Order<Of, Column>): Page<Row, Of> {
  const items = rows.length > limit ? rows.slice(0, limit) : rows
  const last = rows.length > limit ? items.at(-1) : undefined
  return { items, next: last && order.cursorOf(last), order }
}
