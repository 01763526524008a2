/** Pages of any resource, in any order: what is asked for, and where the next one begins. */
import { z } from 'zod'
import type { Cursor, Order, Page, Position } from '../../db/order.ts'
import { parsePosition, writePosition } from './cursor.ts'
import { int64Input } from './int64.ts'

const MAX_LIMIT = 100
const DEFAULT_LIMIT = 20

/** Characters of a cursor: room for a text that an index can hold, each character escaped. */
const MAX_CURSOR = 4_096

const orders = new WeakMap<object, Order>()

/**
 * The inputs that every paged operation takes; `noun` says in the plural what is listed. The cursor is
 * the int64 where one orders, and a text that only the service can read otherwise.
 */
export function pagingInputs<Of extends Cursor>(noun: string, order: Order<Of>) {
  const limit = z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(DEFAULT_LIMIT)
    .meta({ description: `Maximum number of ${noun} returned.` })
  const cursor = cursorInput(noun, order).optional()
  orders.set(cursor, order)
  // It is the schema of the order's cursor, which the compiler cannot follow.
  return { limit, cursor: cursor as unknown as CursorInput<Of> }
}

type CursorInput<Of extends Cursor> = [Of] extends [bigint]
  ? z.ZodOptional<ReturnType<typeof int64Input>>
  : z.ZodOptional<ReturnType<typeof positionInput>>

function cursorInput(noun: string, order: Order) {
  const [{ column, direction } = { column: '', direction: '' }] = order.columns
  const side = direction === 'ascending' ? 'greater' : 'smaller'
  return order.isPlain
    ? int64Input({
        description: `The \`${column}\` of the last of the ${noun} seen: only those with a ${side} \`${column}\` follow.`,
      })
    : positionInput(noun, order)
}

const RULE = 'must be one that the service gave, in the Link of the page before'

const positionInput = (noun: string, order: Order) =>
  z
    .string({ error: 'must be a string' })
    .max(MAX_CURSOR, RULE)
    .transform((text, context): Position => {
      const position = parsePosition(text, order)
      if (position) return position
      context.addIssue({ code: 'custom', message: RULE })
      return z.NEVER
    })
    .meta({
      description: `Where a page begins, as the \`Link\` of the page before says it: behind the last of the ${noun} there.`,
      override: {
        type: 'string',
        minLength: 1,
        maxLength: MAX_CURSOR,
        pattern: '^[A-Za-z0-9_-]+$',
      },
    })

/** The order of the cursor that an input takes; undefined where it takes none. */
export function cursorOrderOf(input: z.ZodType): Order | undefined {
  let schema: z.ZodType | undefined = input
  while (schema && !(schema instanceof z.ZodObject)) {
    schema = (schema.def as { innerType?: z.ZodType }).innerType // what has a default, for one
  }
  const { cursor } = (schema?.shape ?? {}) as { cursor?: object }
  return cursor && orders.get(cursor)
}

type Resolver<Options, Result> = (options: Options) => Promise<Result>

const resolvers = new WeakMap<object, Order>()

/**
 * The resolver of a paged operation in this order, from a function that returns a page. Both
 * surfaces answer with the items alone. The next cursor is left in the context, because what a
 * procedure returns is its output, and there it has no place; REST makes the `Link` header of it.
 */
export function paged<
  Item,
  Of extends Cursor,
  Options extends { ctx: { page: { next: bigint | string | undefined } } },
>({ by }: { by: Order<Of> }, list: Resolver<Options, Page<Item, Of>>): Resolver<Options, Item[]> {
  const resolver = async (options: Options) => {
    const { items, next, order } = await list(options)
    if (order !== by)
      throw new TypeError('The store gave a page in another order than that of paged(…)')
    const cursor: Cursor | undefined = next
    options.ctx.page.next = typeof cursor === 'object' ? writePosition(cursor) : cursor
    return items
  }
  resolvers.set(resolver, by)
  return resolver
}

/** The order of the pages of a resolver; undefined for one that was not made by `paged`. */
export const pageOrderOf = (resolver: object): Order | undefined => resolvers.get(resolver)
