/** The procedures of helpers, and of their relation to visits, many to many. */
import { z } from 'zod'
import type { Call } from '../../../src/procedure/call.ts'
import { paged } from '../../../src/procedure/paging.ts'
import { found, proceduresWith } from '../../../src/procedure/procedure.ts'
import { create, write } from '../../../src/procedure/write.ts'
import { described } from '../../support/procedures.ts'
import { example as exampleVisit, noVisit, one as oneVisit } from '../procedures.ts'
import type { Stores } from '../router.ts'
import { Visits } from '../schema.ts'
import { Helper, HelperOfVisit, ListVisitsOfHelper, NewHelper, OneHelper } from './schema.ts'

const { procedure } = proceduresWith<Stores>()

const example: Helper = { id: 5n, name: 'Eve', visits: 0n }
const noHelper = (id: bigint) => `There is no helper with the id ${id}`
const notFound = noHelper(example.id)
const link = `${oneVisit}/helpers/{helperId}` as const
const ofBoth = { notFound: [noVisit(exampleVisit.id), notFound] }

const createHelper = procedure
  .meta(
    described('POST', '/helpers', {
      ...{ creates: '/helpers/{id}', takesKey: true, example, exampleInput: { name: 'Eve' } },
    }),
  )
  .input(NewHelper)
  .output(Helper)
  .mutation(({ ctx, input }) => create(ctx, ctx.stores.helpers.newHelper, input))

const getHelper = procedure
  .meta(described('GET', '/helpers/{helperId}', { notFound, example }))
  .input(OneHelper)
  .output(Helper)
  .query(async ({ ctx, input: { helperId } }) =>
    found(await ctx.stores.helpers.get(ctx, helperId), noHelper(helperId)),
  )

/** In pieces, each in a transaction: after a timeout, a repetition removes the rest. */
const removeHelper = procedure
  .meta(described('DELETE', '/helpers/{helperId}', { notFound }))
  .input(OneHelper)
  .output(z.void())
  .mutation(async ({ ctx, input: { helperId } }) => {
    let isRemoved = false
    while (!isRemoved) {
      await write(ctx, async (call) => {
        const isLast = await call.stores.helpers.removeSome(call, helperId)
        isRemoved = found(isLast, noHelper(helperId))
      })
    }
  })

const listVisitsOfHelper = procedure
  .meta(
    described('GET', '/helpers/{helperId}/visits', {
      ...{ isPaged: true, notFound, example: [exampleVisit] },
    }),
  )
  .input(ListVisitsOfHelper)
  .output(paged(Visits))
  .query(async ({ ctx, input }) => {
    const { helpers } = ctx.stores
    found(await helpers.get(ctx, input.helperId), noHelper(input.helperId))
    return await helpers.listVisits(ctx, input)
  })

/** Locks the visit, so that it stays until the end of the transaction. All lock it before the helper. */
async function lockVisit(call: Call<Stores>, place: HelperOfVisit): Promise<void> {
  const { visits } = call.stores
  await visits.lock(call, place.visitId)
  found(await visits.get(call, place), noVisit(place.visitId))
}

const addHelperToVisit = procedure
  .meta(described('PUT', link, ofBoth))
  .input(HelperOfVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      await lockVisit(call, input)
      const isHelper = await call.stores.helpers.link(call, input)
      found(isHelper || undefined, noHelper(input.helperId))
    }),
  )

const removeHelperOfVisit = procedure
  .meta(described('DELETE', link, ofBoth))
  .input(HelperOfVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      await lockVisit(call, input)
      const isHelper = await call.stores.helpers.unlink(call, input)
      found(isHelper || undefined, noHelper(input.helperId))
    }),
  )

export const helperProcedures = {
  ...{ createHelper, getHelper, removeHelper, listVisitsOfHelper },
  ...{ addHelperToVisit, removeHelperOfVisit },
}
