/** Pages of any resource: what is asked for, what a store gives, and where the next one begins. */
import { z } from 'zod'
import { int64Input } from './int64.ts'

const MAX_LIMIT = 100
const DEFAULT_LIMIT = 20

/** The inputs that every paged operation takes; `noun` says in the plural what is listed. */
export const pagingInputs = (noun: string) => ({
  limit: z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(DEFAULT_LIMIT)
    .meta({ description: `Maximum number of ${noun} returned.` }),
  cursor: int64Input({
    description: `The \`id\` of the last of the ${noun} seen: only those with a greater \`id\` follow.`,
  }).optional(),
})

/** One page, and the cursor of the page after it, if there is one. */
export interface Page<Item> {
  items: Item[]
  next: bigint | undefined
}

/** The page in what a query for one row more than `limit` gave, by ascending id. */
export function pageOf<Item extends { id: bigint }>(rows: Item[], limit: number): Page<Item> {
  const items = rows.length > limit ? rows.slice(0, limit) : rows
  return { items, next: rows.length > limit ? items.at(-1)?.id : undefined }
}

type Resolver<Options, Result> = (options: Options) => Promise<Result>

const pagedResolvers = new WeakSet<object>()

/**
 * The resolver of a paged operation, from a function that gives a page. Both surfaces answer with
 * the items alone. The next cursor is left in the context, because what a procedure gives is its
 * output, and there it has no place; REST makes the `Link` header of it.
 */
export function paged<Item, Options extends { ctx: { page: Pick<Page<Item>, 'next'> } }>(
  list: Resolver<Options, Page<Item>>,
): Resolver<Options, Item[]> {
  const resolver = async (options: Options) => {
    const { items, next } = await list(options)
    options.ctx.page.next = next
    return items
  }
  pagedResolvers.add(resolver)
  return resolver
}

/** Whether a resolver was made by `paged`. */
export const isPaged = (resolver: object): boolean => pagedResolvers.has(resolver)
