/** Pages of rows in any order: the clauses of the query follow from the order. */
import { type Compilable, type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Deadline } from '../deadline.ts'
import { engineOf } from '../engine.ts'
import {
  type Cursor,
  type Order,
  type OrderedColumn,
  type Page,
  type Position,
  pageOf,
  sortPlain,
} from '../order.ts'
import { retry } from '../retry.ts'
import { type Execute, statement, type Value } from '../statement.ts'
import type { Database, Tables } from '../tables.ts'
import { type Coalesced, coalesce } from './coalesce.ts'

interface PageQuery<Of> {
  limit: number
  cursor?: Of | undefined
}

interface Pages<Query, Of extends Cursor, Column extends string, Row, Item> {
  order: Order<Of, Column>
  /** The table of the ordered columns, where the query joins tables. */
  table?: keyof Tables
  /**
   * Returns the query for all rows, without an order. Its columns include the ordered ones. `value`
   * stands for a value of the query; `has` returns whether the query has a field, for optional filters.
   */
  select(
    db: Database,
    value: Value<Query>,
    has: (field: keyof Query) => boolean,
  ): SelectQueryBuilder<Tables, keyof Tables, Row>
  /** Converts a row to a new item, for each caller. It must not change the row. */
  item(row: Row): Item
}

/** The column with the number of the page that a row belongs to, where one query reads several. */
const PAGE = '$page'

/**
 * Returns a function that reads a page: the first `limit` items, after `cursor` if there is one. It
 * throws DatabaseUnavailableError, also at the deadline. A page reads only its own rows if an index
 * has the columns of the filters, then those of the order. Concurrent callers share queries, because
 * a round trip costs more than a page; callers with the same query share the rows.
 */
export function pages<
  Query extends PageQuery<Of>,
  Of extends Cursor,
  Column extends string,
  Row extends Record<Column, bigint | string>,
  Item,
>({
  order,
  table,
  select,
  item,
}: Pages<Query, Of, Column, Row, Item>): Coalesced<Query, Page<Item, Of>> {
  type PageRow = Row & { [PAGE]?: bigint | number }
  const statements = new Map<string, Execute<Query[], PageRow>>()

  const compile = (fields: Set<string>, count: number) =>
    statement<Query[], PageRow>((db, value) => {
      const queries = Array.from({ length: count }, (_, index) => {
        const valueHere: Value<Query> = (read) => value((all) => read(all[index] as Query)) // there are `count`
        let rows = select(db, valueHere, (field) => fields.has(String(field)))
        if (fields.has('cursor')) {
          rows = rows.where((eb) => after(eb as never, order.columns, valueHere, table))
        }
        for (const item of orderItems(order, table)) rows = rows.orderBy(item)
        // One more row shows whether another page follows.
        return rows.limit(valueHere(({ limit }) => limit + 1))
      })
      return count === 1 ? (queries[0] as Compilable<PageRow>) : unionOf(db, queries, order)
    })

  async function readPages(
    db: Database,
    queries: Query[],
    deadline: Deadline,
  ): Promise<Page<Row, Of>[]> {
    const fields = fieldsOf(queries[0] as Query) // `keyOf` makes all equal
    const name = `${queries.length} ${fields}`
    const read = statements.get(name) ?? compile(new Set(fields), queries.length)
    statements.set(name, read)
    const { rows } = await retry(() => read(db, queries, deadline), { repeatable: true, deadline })
    const rowsOf: Row[][] = queries.length === 1 ? [rows] : queries.map(() => [])
    if (queries.length > 1) {
      for (const row of rows) rowsOf[Number(row[PAGE])]?.push(row)
      if (order.isPlain) for (const page of rowsOf) sortPlain(page, order)
    }
    return queries.map(({ limit }, index) => pageOf(rowsOf[index] as Row[], limit, order))
  }

  const readPage = coalesce<Query, Page<Row, Of>>({
    keyOf: (query) => fieldsOf(query).join(),
    nameOf,
    maxSizeOn: (db) => engineOf(db).pagesPerQuery,
    run: readPages,
  })
  return async (db, query, deadline) => {
    // Callers with the same query share the rows. Each has items of its own, which it may change.
    const page = await readPage(db, query, deadline)
    return { ...page, items: page.items.map(item) }
  }
}

/** Returns the names of the fields that a query has. Each set of them has a statement of its own. */
const fieldsOf = (query: object): string[] => {
  const fields: string[] = []
  for (const name in query) if (query[name as never] !== undefined) fields.push(name)
  return fields
}

/** Returns a text that is equal for equal queries only: a field is never `1n` in one and `'1'` in another. */
const nameOf = (query: object): string =>
  JSON.stringify(query, (_name, value) => (typeof value === 'bigint' ? String(value) : value))

/** Returns the items of ORDER BY. */
const orderItems = ({ columns }: Order, table?: string) =>
  columns.map(({ column, direction }) => {
    const name = table ? sql.id(table, column) : sql.id(column)
    return direction === 'ascending' ? name : sql`${name} desc`
  })

/**
 * Returns the query for the rows of several pages. The order of each page alone selects its rows, and does
 * not order the result: https://dev.mysql.com/doc/refman/9.4/en/union.html. A plain order is left to
 * `sortPlain`, because to order the result the server needs a temporary table, a seventh of its time.
 */
function unionOf<Row>(
  db: Database,
  queries: SelectQueryBuilder<Tables, keyof Tables, Row>[],
  order: Order,
): Compilable<Row> {
  const numbered = queries.map((query, index) => query.select(sql.lit(index).as(PAGE)))
  const rows = sql.join(numbered, sql` union all `)
  const items = sql.join([sql.id(PAGE), ...orderItems(order)])
  const union = order.isPlain ? sql<Row>`${rows}` : sql<Row>`${rows} order by ${items}`
  // The driver takes other kinds of queries for writes.
  const query = (queries[0] as (typeof queries)[number]).toOperationNode()
  return { compile: () => ({ ...union.compile(db), query }) }
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
  table?: string,
) {
  const columnOf = (column: string) => (table ? `${table}.${column}` : column)
  const positionOf = (index: number) =>
    value(({ cursor }) => {
      const position: Position = typeof cursor === 'bigint' ? [cursor] : (cursor as Position)
      return position[index] as bigint | string // a position has a value for each column
    })
  const compare = (index: number, orEqual: '' | '=') => {
    const { column, direction } = columns[index] as OrderedColumn // within its bounds
    const operator = direction === 'ascending' ? '>' : '<'
    return eb(columnOf(column), `${operator}${orEqual}`, positionOf(index))
  }
  const from = (index: number): ReturnType<typeof compare> => {
    if (index === columns.length - 1) return compare(index, '')
    const { column } = columns[index] as OrderedColumn // within its bounds
    const isEqual = eb(columnOf(column), '=', positionOf(index))
    return eb.or([compare(index, ''), eb.and([isEqual, from(index + 1)])]) as never
  }
  return columns.length === 1 ? from(0) : eb.and([compare(0, '='), from(0)])
}
