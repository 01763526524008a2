/** The order of a list: by one or several columns, the last of which no two rows have alike. */

/**
 * A column that orders rows. It is never null: rows would be missing behind a null. Texts are ordered
 * by code points, times and decimals are integers (see tables.ts).
 */
export interface OrderedColumn {
  column: string
  type: 'int64' | 'text'
  direction: 'ascending' | 'descending'
  /** Whether no two rows have it alike, which the last one says unless it is `id`. */
  unique?: true
}

/** The place of a row in an order: its values in the ordered columns. */
export type Position = readonly (bigint | string)[]

/** What a page begins after: the value itself where one int64 column orders, else a position. */
export type Cursor = bigint | Position

/** An order, made by `orderBy`; pages of another one than the cursor's are an error of types. */
export interface Order<Of extends Cursor = Cursor, Column extends string = string> {
  readonly columns: readonly (OrderedColumn & { column: Column })[]
  /** Whether one int64 column orders, so that its value is the cursor. */
  readonly isPlain: boolean
  /** The cursor behind a row. */
  readonly cursorOf: (row: Readonly<Record<Column, bigint | string>>) => Of
}

type CursorOf<Columns> = Columns extends readonly [{ type: 'int64' }] ? bigint : Position

/** The order by these columns. Throws TypeError where two rows may have the same place in it. */
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
    throw new TypeError(`A row to be ordered must have ${column}, of the type ${type}`)
  }
  return {
    columns,
    isPlain,
    cursorOf: (row) =>
      // The compiler cannot see that `isPlain` says which of the two it is.
      (isPlain
        ? valueIn(row, last)
        : columns.map((column) => valueIn(row, column))) as CursorOf<Columns>,
  }
}

/** By ascending `id`, the order in which rows were added. */
export const BY_ID = orderBy([{ column: 'id', type: 'int64', direction: 'ascending' }])

/** One page, and the cursor of the page after it, if there is one. */
export interface Page<Item, Of extends Cursor = Cursor> {
  items: Item[]
  next: Of | undefined
  order: Order<Of>
}

/** The page in what a query for one row more than `limit` returned, in this order. */
export function pageOf<
  Row extends Record<Column, bigint | string>,
  Of extends Cursor,
  Column extends string,
>(rows: Row[], limit: number, order: Order<Of, Column>): Page<Row, Of> {
  const items = rows.length > limit ? rows.slice(0, limit) : rows
  const last = rows.length > limit ? items.at(-1) : undefined
  return { items, next: last && order.cursorOf(last), order }
}
