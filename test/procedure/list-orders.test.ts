/** Lists in any order: each row once, in order, from page to page, by an index. */
import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { writePosition } from '../../client/src/encoding.ts'
import { pages } from '../../db/coalesce/pages.ts'
import { idColumn, tableOptions } from '../../db/columns.ts'
import type { Deadline } from '../../db/deadline.ts'
import { BY_ID, type Cursor, type Order, orderBy, pageOf } from '../../db/order.ts'
import type { Value } from '../../db/statement.ts'
import type { Database } from '../../db/tables.ts'
import { createStores } from '../../src/petstore/stores.ts'
import type { Stores } from '../../src/procedure/context.ts'
import { dateTimeInput } from '../../src/procedure/dates.ts'
import { int64Input, int64Output } from '../../src/procedure/int64.ts'
import { cursorOrderOf, paged, pagingInputs } from '../../src/procedure/paging.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { textOutput } from '../../src/procedure/text.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { errorOf, serviceForFile, trpcClient } from '../support/service.ts'
import { watchStatements } from '../support/statements.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    notes: { id: bigint; board: bigint; title: string; written_at: bigint }
    boards: { id: bigint; title: string }
  }
}

/** Characters of a title: with the other columns of its index they have the 3,072 bytes of InnoDB. */
const LONGEST = 764

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('notes')
    .addColumn('id', ...idColumn(db))
    .addColumn('board', 'bigint', (column) => column.notNull())
    .addColumn('title', `varchar(${LONGEST})`, (column) => column.notNull())
    .addColumn('written_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('notes_newest', ['board', 'written_at', 'id'])
    .addUniqueConstraint('notes_title', ['board', 'title', 'id'])
    .modifyEnd(await tableOptions(db))
    .execute()
  await db.schema
    .createTable('boards')
    .addColumn('id', ...idColumn(db))
    .addColumn('title', 'varchar(40)', (column) => column.notNull())
    .modifyEnd(await tableOptions(db))
    .execute()
  await sql`insert into boards (title) values ('one'), ('two')`.execute(db)
}

const down = 'descending'
const newest = orderBy([
  { column: 'written_at', type: 'int64', direction: down },
  { column: 'id', type: 'int64', direction: down },
])
const titles = orderBy([
  { column: 'title', type: 'text', direction: 'ascending' },
  { column: 'id', type: 'int64', direction: 'ascending' },
])
const mixed = orderBy([
  { column: 'title', type: 'text', direction: down },
  { column: 'written_at', type: 'int64', direction: 'ascending' },
  { column: 'id', type: 'int64', direction: down },
])
const unique = orderBy([{ column: 'title', type: 'text', direction: 'ascending', unique: true }])
const latest = orderBy([{ column: 'id', type: 'int64', direction: down }])

interface Query<Of> {
  limit: number
  cursor?: Of | undefined
  board: bigint
  title?: string | undefined
  since?: Date | undefined
}

/** A store that runs the reader of the procedure. A real resource has a store with its own reads. */
const readerStore = (db: Database) => ({
  read: <Of, Result>(
    reader: (db: Database, query: Query<Of>, deadline: Deadline) => Promise<Result>,
    query: Query<Of>,
    deadline: Deadline,
  ) => reader(db, query, deadline),
})
interface AllStores extends Stores {
  notes: ReturnType<typeof readerStore>
}
const createAllStores = (db: Database): AllStores => ({
  ...createStores(db),
  notes: readerStore(db),
})

const board = int64Input({ description: 'The board.' })
const since = dateTimeInput({ description: 'The earliest time.' })
const Note = z
  .object({
    id: int64Output({ description: 'The note.' }),
    title: textOutput({}, LONGEST),
    written_at: int64Output({ description: 'When.' }),
  })
  .meta({ id: 'Note' })
const example = { id: 1n, title: 'a', written_at: 7n }

/** An operation that lists notes in an order. */
function listing<Of extends Cursor>(
  name: string,
  by: Order<Of, 'id' | 'title' | 'written_at'>,
  inputs: ReturnType<typeof pagingInputs<Of>>,
) {
  const readPage = pages({
    order: by,
    ...(name === 'joined' && { table: 'notes' as const }),
    select(db, value: Value<Query<Of>>, has) {
      const board = value((query) => query.board)
      const notes = db.selectFrom('notes')
      // Both tables have an id and a title.
      const joined = notes.innerJoin('boards', 'boards.id', 'notes.board')
      const rows = (name === 'joined' ? (joined as typeof notes) : notes)
        .selectAll('notes')
        .where('board', '=', board)
      const title = value((query) => query.title as string)
      if (has('title')) return rows.where('notes.title', '=', title)
      const since = value((query) => BigInt((query.since as Date).getTime()))
      return has('since') ? rows.where('written_at', '>=', since) : rows
    },
    item: ({ id, title, written_at }) => ({ id, title, written_at }),
  })
  return procedure
    .meta(described('GET', `/boards/{board}/${name}`, { paged: true, example: [example] }))
    .input(z.object({ board, title: z.string().optional(), since: since.optional(), ...inputs }))
    .output(z.array(Note).meta({ id: `Notes_${name}` }))
    .query(
      paged({ by }, ({ ctx, input }) =>
        (ctx.stores as AllStores).notes.read(readPage, input as Query<Of>, ctx.deadline),
      ),
    )
}

const served = router({
  newest: listing('newest', newest, pagingInputs('notes', newest)),
  titles: listing('titles', titles, pagingInputs('notes', titles)),
  mixed: listing('mixed', mixed, pagingInputs('notes', mixed)),
  latest: listing('latest', latest, pagingInputs('notes', latest)),
  joined: listing('joined', mixed, pagingInputs('notes', mixed)),
  unique: listing('unique', unique, pagingInputs('notes', unique)),
})
const names = ['newest', 'titles', 'mixed', 'joined', 'latest'] as const

const database = engine === 'mysql' ? await newReversed() : await newDatabase()
const statements = await watchStatements(database.url)
afterAll(() => statements.close())
const resources = resourcesOf(served, createAllStores)
const service = await serviceForFile({}, { database, resources, prepare: up })

/** A database whose server returns the rows of a union last first, unless the union has an order. */
async function newReversed(): Promise<TestDatabase> {
  const proxied = await newProxiedDatabase()
  proxied.proxy.rewrite((statement) =>
    / union all /.test(statement) && !/ order by `\$page`/.test(statement)
      ? `${statement} order by \`$page\` desc, \`id\``
      : statement,
  )
  return proxied
}

interface StoredNote {
  title: string
  writtenAt: bigint
}
async function store(notes: StoredNote[], board = 1n): Promise<void> {
  if (notes.length === 0) return
  await service.sql(
    `insert into notes (board, title, written_at) values ${notes.map(() => '(?, ?, ?)')}`,
    notes.flatMap(({ title, writtenAt }) => [board, title, writtenAt]),
  )
}

/** The ids of all pages, found by following the Link headers. */
async function byLinks(path: string): Promise<bigint[]> {
  const ids: bigint[] = []
  for (let next: string | undefined = path; next; ) {
    const { body, headers } = await service.rest('GET', next)
    ids.push(...(body as { id: number }[]).map(({ id }) => BigInt(id)))
    next = /<(.+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.slice(service.baseUrl.length)
  }
  return ids
}

const compare = <Part>(one: Part, other: Part) => (one < other ? -1 : one > other ? 1 : 0)
/** Compares code points; the order of UTF-16 units differs. */
const compareTexts = (one: string, other: string) =>
  Buffer.compare(Buffer.from(one), Buffer.from(other))

test('each row is listed once, in order, for any rows and any limit', async () => {
  const title = fc.constantFrom('a', 'b', 'B', 'ä', 'a ', '\uFFFD', '😀', 'a"\\')
  const writtenAt = fc.constantFrom(-(2n ** 63n), -1n, 0n, 2n ** 53n + 1n, 2n ** 63n - 1n)
  const notes = fc.array(fc.record({ title, writtenAt }), { maxLength: 25 })
  await fc.assert(
    fc.asyncProperty(notes, fc.integer({ min: 1, max: 9 }), async (stored, limit) => {
      await service.sql('delete from notes')
      await store(stored)
      await store([{ title: 'elsewhere', writtenAt: 0n }], 2n)
      const rows = (await service.sql(
        'select id, title, written_at from notes where board = 1',
      )) as unknown as { id: bigint; title: string; written_at: bigint }[]
      type Row = (typeof rows)[number]
      const inMixedOrder = (a: Row, b: Row) =>
        compareTexts(b.title, a.title) || compare(a.written_at, b.written_at) || compare(b.id, a.id)
      const orders: Record<string, (one: Row, other: Row) => number> = {
        newest: (a, b) => compare(b.written_at, a.written_at) || compare(b.id, a.id),
        titles: (a, b) => compareTexts(a.title, b.title) || compare(a.id, b.id),
        mixed: inMixedOrder,
        joined: inMixedOrder,
        latest: (a, b) => compare(b.id, a.id),
      }
      for (const name of names) {
        const expected = rows.toSorted(orders[name]).map(({ id }) => BigInt(id))
        expect(await byLinks(`/boards/1/${name}?limit=${limit}`), name).toEqual(expected)
      }
    }),
    { numRuns: 12 },
  )
})

test('rows are listed by one unique text', async () => {
  await service.sql('delete from notes')
  await store(['cc', 'a', 'ca', 'b'].map((title) => ({ title, writtenAt: 0n })))
  const rows = await service.sql('select id from notes order by title')
  expect(await byLinks('/boards/1/unique?limit=1')).toEqual(rows.map(({ id }) => BigInt(`${id}`)))
})

test.each([
  ['emoji', '😀'],
  ['control characters', '\u0001'],
  ['quotation marks', '"'],
])('rows are listed by the longest titles, of %s', async (_what, character) => {
  await service.sql('delete from notes')
  const start = character.repeat(LONGEST - 1)
  await store(['b', 'c', 'a'].map((end) => ({ title: start + end, writtenAt: 2n ** 63n - 1n })))
  const rows = await service.sql('select id from notes order by id')
  const [b, c, a] = rows.map(({ id }) => BigInt(`${id}`))
  expect(await byLinks('/boards/1/titles?limit=1')).toEqual([a, b, c])
  // No index has this order, so MySQL sorts the rows.
  expect(await byLinks('/boards/1/mixed?limit=1')).toEqual([c, b, a])
})

test('concurrent pages with different cursors are the same as sequential ones', async () => {
  await service.sql('delete from notes')
  const texts = ['a', 'B', 'ä', '\uFFFD', '😀', 'a"\\']
  await store(
    Array.from({ length: 40 }, (_, index) => ({
      title: String(texts[index % texts.length]),
      writtenAt: BigInt((index * 7) % 5),
    })),
  )
  const rows = new Map(
    (await service.sql('select id, title, written_at from notes')).map((row) => [
      BigInt(String(row.id)),
      row as { title: string; written_at: bigint },
    ]),
  )
  const requests: [path: string, expected: bigint[]][] = []
  for (const name of names) {
    const ids = await byLinks(`/boards/1/${name}?limit=100`)
    for (const [index, id] of ids.entries()) {
      const { title, written_at } = rows.get(id) as { title: string; written_at: bigint }
      const cursor = {
        newest: () => writePosition([written_at, id]),
        titles: () => writePosition([title, id]),
        mixed: () => writePosition([title, written_at, id]),
        joined: () => writePosition([title, written_at, id]),
        latest: () => `${id}`,
      }[name]()
      const limit = 1 + (index % 3)
      const path = `/boards/1/${name}?limit=${limit}&cursor=${encodeURIComponent(cursor)}`
      requests.push([path, ids.slice(index + 1, index + 1 + limit)])
    }
  }
  const answers = await Promise.all(requests.map(([path]) => service.rest('GET', path)))
  const found = answers.map(({ body }) => (body as { id: number }[]).map(({ id }) => BigInt(id)))
  expect(found).toEqual(requests.map(([, expected]) => expected))
  if (engine === 'mysql') {
    const unions = await statements.like(/\bunion all\b.*\bfrom\W+notes\b/is)
    expect(unions.length).toBeGreaterThan(0)
  }
})

test.each([',', ':', ''])(
  'concurrent pages whose values are equal when joined by %j are two pages',
  async (separator) => {
    await service.sql('delete from notes')
    const [one, other] = ['b', `b${separator}2`] as const
    await store([one, other].map((title) => ({ title, writtenAt: 7n })))
    const pageOf = async (title: string, after: string) => {
      const cursor = writePosition([after, 0n])
      const path = `/boards/1/titles?limit=2&title=${title}&cursor=${cursor}`
      const { body } = await service.rest('GET', path)
      return (body as { title: string }[]).map((note) => note.title)
    }
    const both = () => [pageOf(one, `2${separator}a`), pageOf(other, 'a')]
    const answers = await Promise.all(Array.from({ length: 20 }, both).flat())
    expect(answers).toEqual(Array.from({ length: 20 }, () => [[one], [other]]).flat())
  },
)

test('concurrent pages whose times differ by a millisecond are two pages', async () => {
  await service.sql('delete from notes')
  await store(['a', 'b'].map((title, index) => ({ title, writtenAt: BigInt(index) })))
  const pageOf = (time: number) =>
    service.rest('GET', `/boards/1/newest?since=${new Date(time).toISOString()}`)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => pageOf(index % 2)))
  const counts = answers.map(({ body }) => (body as unknown[]).length)
  expect(counts).toEqual(Array.from({ length: 20 }, (_, index) => 2 - (index % 2)))
})

const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
test.each([
  ['newest', ''],
  ['newest', '7'],
  ['newest', 'not%20base64url'],
  ['newest', text(['7'])],
  ['newest', text(['7', '8', '9'])],
  ['newest', text([7, 8])],
  ['newest', text(['7', null])],
  ['newest', text(['7', 'x'])],
  ['newest', text(['7', '08'])],
  ['newest', text(['7', '9223372036854775808'])],
  ['newest', text(['7', '-9223372036854775809'])],
  ['newest', text({ 0: '7', 1: '8', length: 2 })],
  ['newest', text(null)],
  ['newest', `${text(['7', '8'])}=`],
  ['newest', `${text(['7', '18'])}&cursor=${text(['7', '8'])}`],
  ['titles', text(['a\0', '8'])],
  ['titles', text(['\uD800', '8'])],
  ['titles', 'A'.repeat(8_193)],
  ['mixed', text(['a', 'b', '8'])],
  ['latest', text(['8'])],
  ['latest', '1.5'],
])('an invalid cursor is rejected: %s %s', async (name, cursor) => {
  const answer = await service.rest('GET', `/boards/1/${name}?cursor=${cursor}`)
  const message = {
    latest: `cursor must be an integer from ${-(2n ** 63n)} to ${2n ** 63n - 1n}`,
    other: cursor.includes('&')
      ? 'cursor must be a string'
      : 'cursor must be the cursor in the Link of the previous page',
  }
  expect(answer.body).toEqual({
    code: 'BAD_REQUEST',
    message: name === 'latest' ? message.latest : message.other,
    status: 400,
  })
})

test('a cursor that is no text is rejected with this reason', async () => {
  const cursor = text(['7', '8'])
  const repeated = await service.rest('GET', `/boards/1/newest?cursor=${cursor}&cursor=${cursor}`)
  const message = 'cursor must be a string'
  expect(repeated.body).toEqual({ code: 'BAD_REQUEST', message, status: 400 })
  const { newest } = trpcClient<typeof served>(service.origin, service.key)
  const call = newest.query({ board: 1n, cursor: 7 as never })
  expect(await errorOf(call)).toEqual({ code: 'BAD_REQUEST', status: 400, message })
})

test('a cursor of more than 8,192 characters is rejected', async () => {
  const status = async (characters: number) => {
    const cursor = text(['a'.repeat(characters), '8'])
    return [cursor.length, (await service.rest('GET', `/boards/1/titles?cursor=${cursor}`)).status]
  }
  expect(await status(6_135)).toEqual([8_191, 200])
  expect(await status(6_137)).toEqual([8_194, 400])
})

test('the document describes the cursor', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  const { paths } = body as {
    paths: Record<string, { get: { parameters: { name: string; schema: object }[] } }>
  }
  const cursorOf = (name: string) =>
    paths[`/boards/{board}/${name}`]?.get.parameters.find(({ name }) => name === 'cursor')
  expect(cursorOf('newest')).toMatchObject({
    description:
      'The cursor in the `Link` of the previous page: the page begins after the last of the notes there.',
    schema: { type: 'string', minLength: 1, maxLength: 8_192, pattern: '^[A-Za-z0-9_-]+$' },
  })
  expect(cursorOf('latest')).toMatchObject({
    description: 'The `id` of the last of the notes seen: only those with a smaller `id` follow.',
    schema: { type: 'integer', format: 'int64' },
  })
})

test('a page in the middle reads only its own entries of an index', async () => {
  await service.sql('delete from notes')
  for (let board = 1n; board <= 10n; board++) {
    const notes = Array.from({ length: 2_000 }, (_, index) => ({
      title: `${index}`,
      writtenAt: BigInt(index >> 1),
    }))
    await store(notes, board)
  }
  await service.sql(engine === 'mysql' ? 'analyze table notes' : 'analyze')
  const [middle] = await service.sql(
    'select id, title, written_at from notes where board = 5 and written_at = 500',
  )
  const { id, title, written_at } = middle as { id: bigint; title: string; written_at: bigint }
  for (const [name, position] of [
    ['newest', [written_at, id]],
    ['titles', [title, id]],
  ] as const) {
    const path = `/boards/5/${name}?limit=20&cursor=${writePosition(position)}`
    expect((await service.rest('GET', path)).body).toHaveLength(20)
    const query = String((await statements.like(/^select\b.*\bfrom\W+notes\b/is)).at(-1))
    if (engine === 'sqlite') {
      const plan = await service.sql(`explain query plan ${query}`)
      const column = name === 'newest' ? 'written_at' : 'title'
      expect(plan.map(({ detail }) => detail).join()).toMatch(
        new RegExp(`^SEARCH notes USING INDEX \\w+ \\(board=\\? AND ${column}[<>]\\?\\)$`),
      )
    } else {
      const read = async () =>
        (await service.sql("show session status like 'Handler_read%'")).reduce(
          (sum, { Value }) => sum + Number(Value),
          0,
        )
      const [first, second] = [await read(), await read()]
      await service.sql(query)
      // There are two ranges: rows that are equal to the cursor in the first column, and rows after it.
      expect((await read()) - second - (second - first), name).toBeLessThanOrEqual(2 * 21 + 2)
    }
  }
})

test('the order of a cursor is known behind any number of wrappers', () => {
  const input = z.object(pagingInputs('notes', mixed))
  for (const wrapped of [input, input.prefault({}), input.prefault({}).readonly()]) {
    expect(cursorOrderOf(wrapped)).toBe(mixed)
  }
  expect(cursorOrderOf(z.object({ cursor: z.string() }))).toBeUndefined()
  expect(cursorOrderOf(z.string())).toBeUndefined()
})

test('a page in another order than that of paged(…) is an error', async () => {
  const list = paged({ by: BY_ID }, async () => pageOf([], 1, latest))
  const call = list({ ctx: { page: { next: undefined } } })
  await expect(call).rejects.toThrow('not the order of paged')
})
