/** Pages of rows in any order: the clauses of the query follow from the order. */
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
   * Returns the query for all rows, without an order. Its columns include the ordered ones. `value`
   * stands for a value of the query; `has` returns whether the query has a field, for optional filters.
   */
  select(
    db: Database,
    value: Value<Query>,
    has: (field: keyof Query) => boolean,
  ): SelectQueryBuilder<Tables, keyof Tables, Row>
  /** Converts a row. */
  item(row: Row): Item
}

/**
 * Returns a function that reads a page: the first `limit` items, after `cursor` if there is one. It
 * throws DatabaseUnavailableError, also at the deadline. A page reads only its own rows if an index
 * has the columns of the filters, then those of the order.
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
      if (fields.has('cursor')) rows = rows.where((eb) => after(eb as never, order.columns, value))
      for (const { column, direction } of order.columns) {
        rows = rows.orderBy(column as never, direction === 'ascending' ? 'asc' : 'desc')
      }
      // One more row shows whether another page follows.
      return rows.limit(value(({ limit }) => limit + 1))
    })

  return async (db: Database, query: Query, deadline: Deadline): Promise<Page<Item, Of>> => {
    // Each set of fields has its own statement.
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
 * Returns the condition for the rows after a cursor. It does not use `(a, b) > (x, y)`, for which MySQL
 * reads no range of an index. The limit of the first column is redundant, but SQLite needs it for that.
 */
function after<Of extends Cursor>(
  eb: Builder,
  columns: readonly OrderedColumn[],
  value: Value<PageQuery<Of>>,
) {
  const positionOf = (index: number) =>
    value(({ cursor }) => {
      const position: Position = typeof cursor === 'bigint' ? [cursor] : (cursor as Position)
      return position[index] as bigint | string // a position has a value for each column
    })
  const compare = (index: number, orEqual: '' | '=') => {
    const { column, direction } = columns[index] as OrderedColumn // within its bounds
    const operator = direction === 'ascending' ? '>' : '<'
    return eb(column, `${operator}${orEqual}`, positionOf(index))
  }
  const from = (index: number): ReturnType<typeof compare> => {
    if (index === columns.length - 1) return compare(index, '')
    const { column } = columns[index] as OrderedColumn // within its bounds
    const isEqual = eb(column, '=', positionOf(index))
    return eb.or([compare(index, ''), eb.and([isEqual, from(index + 1)])]) as never
  }
  return columns.length === 1 ? from(0) : eb.and([compare(0, '='), from(0)])
}
