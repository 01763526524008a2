/** Pages of rows by id. Concurrent callers share queries. */
import { type Compilable, type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { Plan, Value } from '../plan.ts'
import type { Tables } from '../tables.ts'

/** A page of a list. All lists are by id, so the id of the last row is the cursor of the next page. */
export interface Page<Item> {
  items: Item[]
  /** The cursor of the next page; undefined for the last page. */
  next: bigint | undefined
}

interface PageQuery {
  limit: number
  cursor?: bigint | undefined
}

interface Pages<Query, Row, Item> {
  /** The direction of the ids: by default `ascending`, the order of creation. */
  order?: 'ascending' | 'descending'
  /**
   * Returns the query for all rows of one table, without an order. Its columns include `id`. `value`
   * stands for a value of the query; `has` returns whether the query has a field, for optional filters.
   */
  select(
    db: Kysely<Tables>,
    value: Value<Query>,
    has: (field: keyof Query) => boolean,
  ): SelectQueryBuilder<Tables, keyof Tables, Row>
  /** Converts a row to a new item, for each caller. It must not change the row. */
  item(row: Row): Item
}

/** The column with the number of the page that a row belongs to, where one query reads several. */
const PAGE = '$page'

const id = sql.ref<bigint>('id')

/**
 * Returns the plan that reads a page: the first `limit` items, after `cursor` if there is one. A page reads
 * only its own rows if an index has the columns of the filters, then the id. Queries with the same fields
 * share a statement, because a round trip costs more than a page: with a statement for each, a fifth fewer
 * pages at random cursors are read. Callers with the same query share the rows.
 */
export function pages<Query extends PageQuery, Row extends { id: bigint }, Item>({
  order = 'ascending',
  select,
  item,
}: Pages<Query, Row, Item>): Plan<Query, Page<Item>, Page<Row>> {
  type PageRow = Row & { [PAGE]?: bigint | number }
  const isAscending = order === 'ascending'

  return {
    use: 'read',
    maxSize: { inProcess: 1, server: 8 },
    nameOf: textOf,
    // The schema of a query leaves few sets of fields.
    kindOf(query) {
      let fields = ''
      for (const name in query) if (query[name] !== undefined) fields += `,${name}`
      return fields
    },
    build(db, values, kind) {
      const fields = kind.split(',')
      const queries = values.map((value) => {
        let rows = select(db, value, (field) => fields.includes(String(field)))
        if (fields.includes('cursor')) {
          // A query with a cursor has one.
          const cursor = value((query) => query.cursor as bigint)
          rows = rows.where(id, isAscending ? '>' : '<', cursor)
        }
        // One more row shows whether another page follows.
        const limit = value((query) => query.limit + 1)
        return rows.orderBy(id, isAscending ? 'asc' : 'desc').limit(limit)
      })
      return queries.length === 1 ? (queries[0] as Compilable) : unionOf(db, queries)
    },
    split(result, queries) {
      const rows: PageRow[] = result.rows
      const rowsOf: Row[][] = queries.length === 1 ? [rows] : queries.map(() => [])
      if (queries.length > 1) {
        for (const row of rows) rowsOf[Number(row[PAGE])]?.push(row)
        // Rows that are in order already take next to no time.
        const sign = isAscending ? 1 : -1
        for (const page of rowsOf) page.sort((one, other) => (one.id < other.id ? -sign : sign))
      }
      return queries.map(({ limit }, index) => {
        const rows = rowsOf[index] as Row[] // as many as queries
        const items = rows.length > limit ? rows.slice(0, limit) : rows
        return { items, next: rows.length > limit ? items.at(-1)?.id : undefined }
      })
    },
    output: ({ items, next }) => ({ items: items.map(item), next }),
  }
}

/** Returns a text that is equal for equal queries only: a field is never `1n` in one and `'1'` in another. */
const textOf = (query: object): string =>
  JSON.stringify(query, (_name, value) => (typeof value === 'bigint' ? String(value) : value))

/**
 * Returns the query for the rows of several pages. The order of each page alone selects its rows, and does
 * not order the result (https://dev.mysql.com/doc/refman/9.4/en/union.html): to order it the server needs
 * a temporary table, a seventh of its time.
 */
function unionOf<Row>(
  db: Kysely<Tables>,
  queries: SelectQueryBuilder<Tables, keyof Tables, Row>[],
): Compilable<Row> {
  const numbered = queries.map((query, index) => query.select(sql.lit(index).as(PAGE)))
  const union = sql<Row>`${sql.join(numbered, sql` union all `)}`
  return { compile: () => union.compile(db) }
}
