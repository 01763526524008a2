/** Pages of rows, in any order: the condition, the order and the limit follow from the order. */
import type { ExpressionBuilder, SelectQueryBuilder } from 'kysely'
import type { Deadline } from './deadline.ts'
import {
  type Cursor,
  type Order,
  type OrderedColumn,
  type Page,
  type Position,
  pageOf,
} from './order.ts'
import { retry } from './retry.ts'
import { type Execute, statement, type Value } from './statement.ts'
import type { Database, Tables } from './tables.ts'

interface PageQuery<Of> {
  limit: number
  cursor?: Of | undefined
}

interface Pages<Query, Of extends Cursor, Column extends string, Row, Item> {
  order: Order<Of, Column>
  /**
   * The rows to be listed, in no order yet, with the ordered columns by their names. `value` puts
   * in what differs from query to query; `has` says whether the query has a field, for a filter that
   * may be left out.
   */
  select(
    db: Database,
    value: Value<Query>,
    has: (field: keyof Query) => boolean,
  ): SelectQueryBuilder<Tables, keyof Tables, Row>
  /** What becomes of a row. */
  item(row: Row): Item
}

/**
 * A function that reads a page: the first `limit` items, of those behind `cursor` if there is one.
 * Its statements are compiled once. An index with the columns that filters compare first, then those of
 * the order, makes a page cost as much as it shows. Throws DatabaseUnavailableError.
 */
export function pages<
  Query extends PageQuery<Of>,
  Of extends Cursor,
  Column extends string,
  Row extends Record<Column, bigint | string>,
  Item,
>({ order, select, item }: Pages<Query, Of, Column, Row, Item>) {
  const statements = new Map<string, Execute<Query, Row>>()

  const compile = (fields: Set<string>) =>
    statement<Query, Row>((db, value) => {
      let rows = select(db, value, (field) => fields.has(String(field)))
      if (fields.has('cursor')) rows = rows.where((eb) => behind(eb as never, order.columns, value))
      for (const { column, direction } of order.columns) {
        rows = rows.orderBy(column as never, direction === 'ascending' ? 'asc' : 'desc')
      }
      // One more than asked for tells whether another page follows.
      return rows.limit(value(({ limit }) => limit + 1))
    })

  return async (db: Database, query: Query, deadline: Deadline): Promise<Page<Item, Of>> => {
    // One statement for each set of fields that are there.
    const fields = Object.keys(query).filter((name) => query[name as keyof Query] !== undefined)
    const name = fields.join()
    const read = statements.get(name) ?? compile(new Set(fields))
    statements.set(name, read)
    const { rows } = await retry(() => read(db, query, deadline), { repeatable: true, deadline })
    const page = pageOf(rows, query.limit, order)
    return { ...page, items: page.items.map(item) }
  }
}

type Builder = ExpressionBuilder<Record<string, Record<string, bigint | string>>, string>

/**
 * The condition for the rows behind a cursor. It is written out, because MySQL finds no range of an
 * index in `(a, b) > (x, y)`; the bound of the first column, which follows from the rest, is for SQLite.
 */
function behind<Of extends Cursor>(
  eb: Builder,
  columns: readonly OrderedColumn[],
  value: Value<PageQuery<Of>>,
) {
  const placeOf = (index: number) =>
    value(({ cursor }) => {
      const position: Position = typeof cursor === 'bigint' ? [cursor] : (cursor as Position)
      return position[index] as bigint | string // a position has a value for each column
    })
  const compare = (index: number, orEqual: '' | '=') => {
    const { column, direction } = columns[index] as OrderedColumn // within its bounds
    const operator = direction === 'ascending' ? '>' : '<'
    return eb(column, `${operator}${orEqual}`, placeOf(index))
  }
  const from = (index: number): ReturnType<typeof compare> => {
    if (index === columns.length - 1) return compare(index, '')
    const { column } = columns[index] as OrderedColumn // within its bounds
    const isLevel = eb(column, '=', placeOf(index))
    return eb.or([compare(index, ''), eb.and([isLevel, from(index + 1)])]) as never
  }
  return columns.length === 1 ? from(0) : eb.and([compare(0, '='), from(0)])
}
