/** Pagination by cursor, for any resource and any order. */
import { z } from 'zod'
import { writePosition } from '../../client/src/encoding.ts'
import type { Cursor, Order, Page, Position } from '../../db/order.ts'
import { parsePosition } from './cursor.ts'
import { int64Input } from './int64.ts'

const MAX_LIMIT = 100
const DEFAULT_LIMIT = 20

/**
 * Characters of a cursor. An index of InnoDB has 3,072 bytes: the longest cursor is that of 768 control
 * characters, each of 6 bytes in JSON, and a URL of 16 KiB has room for it.
 */
const MAX_CURSOR = 8_192

const cursorOrders = new WeakMap<object, Order>()

/**
 * Returns the schemas of `limit` (1 to 100, by default 20) and `cursor`, the inputs of every paged
 * operation. `noun` is the plural of the listed resource. The cursor is the int64 itself for an order
 * by one int64 column, and opaque text for all others.
 */
export function pagingInputs<Of extends Cursor>(noun: string, order: Order<Of>) {
  const limit = z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(DEFAULT_LIMIT)
    .meta({ description: `Maximum number of ${noun} returned.` })
  const schema = order.isPlain ? plainInput(noun, order) : positionInput(noun, order)
  const cursor = schema.optional()
  cursorOrders.set(cursor, order)
  // The schema follows from `order.isPlain`, which the compiler cannot relate to `Of`.
  return { limit, cursor: cursor as unknown as CursorInput<Of> }
}

type CursorInput<Of extends Cursor> = [Of] extends [bigint]
  ? z.ZodOptional<ReturnType<typeof int64Input>>
  : z.ZodOptional<ReturnType<typeof positionInput>>

function plainInput(noun: string, { columns }: Order) {
  const [{ column, direction } = { column: '', direction: '' }] = columns
  const side = direction === 'ascending' ? 'greater' : 'smaller'
  const description = `The \`${column}\` of the last of the ${noun} seen: only those with a ${side} \`${column}\` follow.`
  return int64Input({ description })
}

const CURSOR_RULE = 'must be the cursor in the Link of the previous page'

const positionInput = (noun: string, order: Order) =>
  z
    .string({ error: 'must be a string' })
    .max(MAX_CURSOR, CURSOR_RULE)
    .transform((text, context): Position => {
      const position = parsePosition(text, order)
      if (position) return position
      context.addIssue({ code: 'custom', message: CURSOR_RULE })
      return z.NEVER
    })
    .meta({
      description: `The cursor in the \`Link\` of the previous page: the page begins after the last of the ${noun} there.`,
      override: {
        type: 'string',
        minLength: 1,
        maxLength: MAX_CURSOR,
        pattern: '^[A-Za-z0-9_-]+$',
      },
    })

/** Returns the order that the `cursor` of an input belongs to; undefined if it has no such field. */
export function cursorOrderOf(input: z.ZodType): Order | undefined {
  let schema: z.ZodType | undefined = input
  while (schema && !(schema instanceof z.ZodObject)) {
    schema = (schema.def as { innerType?: z.ZodType }).innerType // of `prefault` and others
  }
  const { cursor } = (schema?.shape ?? {}) as { cursor?: object }
  return cursor && cursorOrders.get(cursor)
}

type Resolver<Options, Result> = (options: Options) => Promise<Result>

const pageOrders = new WeakMap<object, Order>()

/**
 * Returns the resolver of a paged operation. `list` returns a page in the order `by`. The output is the
 * items alone; the next cursor goes to `ctx.page`, and REST writes it in the `Link` header (RFC 8288).
 * The resolver throws TypeError for a page in another order.
 */
export function paged<
  Item,
  Of extends Cursor,
  Options extends { ctx: { page: { next: bigint | string | undefined } } },
>({ by }: { by: Order<Of> }, list: Resolver<Options, Page<Item, Of>>): Resolver<Options, Item[]> {
  const resolver = async (options: Options) => {
    const { items, next, order } = await list(options)
    if (order !== by) throw new TypeError('The order of the page is not the order of paged(…)')
    const cursor: Cursor | undefined = next
    options.ctx.page.next = typeof cursor === 'object' ? writePosition(cursor) : cursor
    return items
  }
  pageOrders.set(resolver, by)
  return resolver
}

/** Returns the order of a resolver's pages; undefined unless `paged` made the resolver. */
export const pageOrderOf = (resolver: object): Order | undefined => pageOrders.get(resolver)
