/** Pagination by cursor, for any resource. */
import { z } from 'zod'
import type { Page } from '../../db/plans/pages.ts'
import { madeBy, type Resolver } from './context.ts'
import { int64Input } from './fields.ts'

/** The maximum of `limit`, and so of the items of a page. */
export const MAX_LIMIT = 100

/**
 * Returns the schemas of `limit` (1 to 100, by default 20) and `cursor`, the inputs of every paged
 * operation. `noun` is the plural of the listed resource.
 */
export const pagingInputs = (noun: string) => ({
  limit: z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(20)
    .meta({ description: `Maximum number of ${noun} returned.`, override: { format: 'int32' } }),
  cursor: int64Input({
    description: `The \`id\` of the last of the ${noun} seen: the page begins after it.`,
  }).optional(),
})

/**
 * Returns the resolver of a paged operation from `list`, which returns a page. The output is the items
 * alone; the next cursor goes to `ctx.nextCursor`, and REST writes it in the `Link` header (RFC 8288).
 */
export const paged = <Input, Item>(list: Resolver<Input, Page<Item>>): Resolver<Input, Item[]> =>
  madeBy('paged', async (options) => {
    const { items, next } = await list(options)
    options.ctx.nextCursor = next
    return items
  })
