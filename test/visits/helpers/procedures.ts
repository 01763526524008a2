/** The procedures of helpers, and of their relation to visits, many to many. */
import { z } from 'zod'
import type { Call } from '../../../src/procedure/call.ts'
import { restMeta } from '../../../src/procedure/meta.ts'
import { paged } from '../../../src/procedure/paging.ts'
import { found, proceduresWith } from '../../../src/procedure/procedure.ts'
import { create, write } from '../../../src/procedure/write.ts'
import { example as exampleVisit, noVisit, one as oneVisit } from '../visits/procedures.ts'
import { Visits } from '../visits/schema.ts'
import type { VisitStore } from '../visits/store.ts'
import { Helper, HelperOfVisit, ListVisitsOfHelper, NewHelper, OneHelper } from './schema.ts'
import type { HelperStore } from './store.ts'

export interface Stores {
  visits: VisitStore
  helpers: HelperStore
}
const { procedure } = proceduresWith<Stores>()

const tag = { name: 'helpers', description: 'Helpers, who come to visits.' }

const example: Helper = { id: 5n, name: 'Eve', visits: 0n }
const noHelper = (id: bigint) => `There is no helper with the id ${id}`
const notFound = noHelper(example.id)
const link = `${oneVisit}/helpers/{helperId}` as const
const ofBoth = { notFound: [noVisit(exampleVisit.id), notFound] }

const createHelper = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/helpers',
      tag,
      summary: 'Add a helper',
      description: 'Adds a helper and returns it.',
      ...{ creates: '/helpers/{id}', takesKey: true, example, exampleInput: { name: 'Eve' } },
      sample: "petstore.createHelper.mutate({ name: 'Eve' })",
    }),
  )
  .input(NewHelper)
  .output(Helper)
  .mutation(({ ctx, input }) => create(ctx, ctx.stores.helpers.newHelper, input))

const getHelper = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/helpers/{helperId}',
      tag,
      summary: 'Get a helper',
      description: 'Returns one helper.',
      notFound,
      example,
      sample: 'petstore.getHelper.query({ helperId: 5 })',
    }),
  )
  .input(OneHelper)
  .output(Helper)
  .query(async ({ ctx, input: { helperId } }) =>
    found(await ctx.stores.helpers.get(ctx, helperId), noHelper(helperId)),
  )

/** In pieces, each in a transaction: after a timeout, a repetition removes the rest. */
const removeHelper = procedure
  .meta(
    restMeta({
      method: 'DELETE',
      path: '/helpers/{helperId}',
      tag,
      summary: 'Remove a helper',
      description: 'Removes a helper, who then comes to no visit.',
      notFound,
      sample: 'petstore.removeHelper.mutate({ helperId: 5 })',
    }),
  )
  .input(OneHelper)
  .output(z.void())
  .mutation(async ({ ctx, input: { helperId } }) => {
    let isRemoved = false
    while (!isRemoved) {
      await write(ctx, async (call) => {
        const { isThere, isLast } = await call.stores.helpers.removeSome(call, helperId)
        found(isThere, noHelper(helperId))
        isRemoved = isLast
      })
    }
  })

const listVisitsOfHelper = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/helpers/{helperId}/visits',
      tag,
      summary: 'List the visits of a helper',
      description: 'Returns a paginated list of the visits that a helper comes to.',
      ...{ isPaged: true, notFound, example: [exampleVisit] },
      sample: 'petstore.listVisitsOfHelper.query({ helperId: 5 })',
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
  .meta(
    restMeta({
      method: 'PUT',
      path: link,
      tag,
      summary: 'Add a helper to a visit',
      description: 'Lets a helper come to a visit, unless it does already.',
      ...ofBoth,
      sample: 'petstore.addHelperToVisit.mutate({ ownerId: 3, visitId: 7, helperId: 5 })',
    }),
  )
  .input(HelperOfVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      await lockVisit(call, input)
      const isHelper = await call.stores.helpers.link(call, input)
      found(isHelper, noHelper(input.helperId))
    }),
  )

const removeHelperOfVisit = procedure
  .meta(
    restMeta({
      method: 'DELETE',
      path: link,
      tag,
      summary: 'Remove a helper from a visit',
      description: 'Lets a helper no longer come to a visit.',
      ...ofBoth,
      sample: 'petstore.removeHelperOfVisit.mutate({ ownerId: 3, visitId: 7, helperId: 5 })',
    }),
  )
  .input(HelperOfVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      await lockVisit(call, input)
      const isHelper = await call.stores.helpers.unlink(call, input)
      found(isHelper, noHelper(input.helperId))
    }),
  )

export const helperProcedures = {
  ...{ createHelper, getHelper, removeHelper, listVisitsOfHelper },
  ...{ addHelperToVisit, removeHelperOfVisit },
}
