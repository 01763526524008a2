/** Pages of rows, by id or by a column and the id. Concurrent callers share queries. */
import { type RawBuilder, type SelectQueryBuilder, type SelectType, sql } from 'kysely'
import type { Builder, Query as SqlQuery } from '../builder.ts'
import type { StatementPlan, Value } from '../plan.ts'
import type { Tables } from '../tables.ts'

/** A page of a list: what the resolver of a paged operation returns. */
export interface Page<Item = unknown> {
  items: Item[]
  /** The value of the input `cursor` for the next page; undefined for the last page. */
  next: unknown
}

/** The query of a page of a list by id: `cursor` is the id of the last row seen. */
interface ById {
  limit: number
  cursor?: bigint | undefined
}

/** The query of a page of a list by a column: `cursor` is the id of the last row seen, and its value of the column. */
interface ByColumn<Type = unknown> {
  limit: number
  cursor?: { id: bigint; value: Type } | undefined
}

/** Returns whether a query has a field: for optional filters. */
export type Has<Query> = (field: keyof Query) => boolean

/** The columns of these tables that have values of this type, each with its table: `pets.id`. */
type Column<Table extends keyof Tables, Type> = {
  [Name in Table]: {
    [Column in keyof Tables[Name] & string]: SelectType<Tables[Name][Column]> extends Type
      ? `${Name}.${Column}`
      : never
  }[keyof Tables[Name] & string]
}[Table]

interface Pages<Query, Table extends keyof Tables, Row, Item> {
  /** The column of the ids, which the list selects as `id`: never null, and no two rows have the same one. */
  id: NoInfer<Column<Table, bigint>>
  /** The direction of the order: by default `ascending`, by id the order of creation. */
  order?: 'ascending' | 'descending'
  /** Returns the query for the rows of a table or a join, without conditions and without the id. A join names each column with its table. */
  select(db: Builder, has: Has<Query>): SelectQueryBuilder<Tables, Table, Row>
  /**
   * Adds the conditions of the filters; `value` stands for a value of the query. They follow that of the cursor,
   * because SQLite begins to read at the first bound of a column.
   */
  where?(
    rows: SelectQueryBuilder<Tables, Table, Row>,
    value: Value<Query>,
    has: Has<Query>,
  ): SelectQueryBuilder<Tables, Table, Row>
  /** Converts a row to a new item, for each caller. It must not change the row. */
  item(row: WithId<Row>): Item
}

type WithId<Row> = Row & { id: bigint }

interface PagesBy<Query extends ByColumn, Table extends keyof Tables, Row, Item>
  extends Pages<Query, Table, Row, Item> {
  /** The column that the list is ordered by before the id, of the type of the cursor's value. It is never null. */
  by: NoInfer<Column<Table, NonNullable<Query['cursor']>['value']>>
  /** Returns the cursor of the page after this row, as the input `cursor` takes it. */
  next(row: WithId<Row>): unknown
}

/** The column with the number of the page that a row belongs to, where one query reads several. */
const PAGE = '$page'

/**
 * Returns the plan that reads a page by id: the first `limit` items, after `cursor` if there is one. It needs an
 * index: first the columns of filters that compare for equality, then those of the order. Queries with the same fields
 * share a statement, and so a round trip: with a statement for each, a fifth fewer pages at random cursors are read.
 * Callers with the same query share the rows.
 */
export const pages = <Query extends ById, Table extends keyof Tables, Row, Item>(
  list: Pages<Query, Table, Row, Item>,
): StatementPlan<Query, Page<Item>, Page<WithId<Row>>> => planOf(list, undefined, ({ id }) => id)

/**
 * Returns the plan that reads a page by another column, and then by id: otherwise as `pages`.
 * @public Lists by a text need it, such as that of owners in test/visits.
 */
export const pagesBy = <Query extends ByColumn, Table extends keyof Tables, Row, Item>(
  list: PagesBy<Query, Table, Row, Item>,
): StatementPlan<Query, Page<Item>, Page<WithId<Row>>> =>
  planOf(list, sql.ref<unknown>(list.by), list.next)

function planOf<Query extends ById | ByColumn, Table extends keyof Tables, Row, Item>(
  { id: idColumn, order, select, where = (rows) => rows, item }: Pages<Query, Table, Row, Item>,
  column: RawBuilder<unknown> | undefined,
  next: (row: WithId<Row>) => unknown,
): StatementPlan<Query, Page<Item>, Page<WithId<Row>>> {
  type PageRow = WithId<Row> & { [PAGE]?: bigint | number }
  const isAscending = order !== 'descending'
  const direction = isAscending ? 'asc' : 'desc'
  const id = sql.ref<bigint>(idColumn)

  /** Adds the condition for the rows after the cursor of a query, which has one. */
  function afterCursor(rows: SelectQueryBuilder<Tables, Table, Row>, value: Value<Query>) {
    const beyond = isAscending ? '>' : '<'
    const lastId = value(({ cursor }) => (typeof cursor === 'object' ? cursor.id : cursor))
    if (!column) return rows.where(id, beyond, lastId as bigint)
    const last = value(({ cursor }) => (typeof cursor === 'object' ? cursor.value : undefined))
    // Both engines begin to read an index at the first bound; at `a > ? or a = ? and b > ?` they do not.
    return rows
      .where(column, `${beyond}=`, last)
      .where((eb) => eb.or([eb(column, beyond, last), eb(id, beyond, lastId as bigint)]))
  }

  return {
    use: 'read',
    // A list by a column has a statement for each page: `split` orders the pages of one statement by id, and only the
    // database can order texts as it does. Of a list by id a statement has eight, by judgement: the first page waits for
    // all of them, and a page takes longer than the way to the database.
    maxSize: column ? 1 : 8,
    identityOf: textOf,
    isList: true,
    // The names of its fields, of which the schema leaves few sets: a text, because maps of lines and statements have it
    // as key.
    kindOf(query) {
      let fields = ''
      for (const name in query) if (query[name] !== undefined) fields += `,${name}`
      return fields
    },
    build(db, values, kind) {
      const fields = kind.split(',')
      const has: Has<Query> = (field) => fields.includes(String(field))
      const selects = values.map((value) => {
        const all = select(db, has)
        const rows = where(has('cursor') ? afterCursor(all, value) : all, value, has)
        const found = rows.select(id.as('id'))
        const ordered = column ? found.orderBy(column, direction) : found
        // One more row shows whether another page follows.
        return ordered.orderBy(id, direction).limit(value(({ limit }) => limit + 1))
      })
      return selects.length === 1 ? (selects[0] as SqlQuery) : unionOf(selects)
    },
    split(result, queries) {
      const rows: PageRow[] = result.rows
      const rowsOf: WithId<Row>[][] = queries.length === 1 ? [rows] : queries.map(() => [])
      if (queries.length > 1) {
        for (const row of rows) rowsOf[Number(row[PAGE])]?.push(row)
        // Rows that are in order already take next to no time.
        const sign = isAscending ? 1 : -1
        for (const page of rowsOf) page.sort((one, other) => (one.id < other.id ? -sign : sign))
      }
      return queries.map(({ limit }, index) => {
        const rows = rowsOf[index] as WithId<Row>[] // as many as queries
        const items = rows.length > limit ? rows.slice(0, limit) : rows
        const last = rows.length > limit ? items.at(-1) : undefined
        return { items, next: last && next(last) }
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
function unionOf<Table extends keyof Tables, Row>(
  selects: SelectQueryBuilder<Tables, Table, Row>[],
): SqlQuery<Row> {
  const numbered = selects.map((page, index) => page.select(sql.lit(index).as(PAGE)))
  return sql<Row>`${sql.join(numbered, sql` union all `)}`
}
