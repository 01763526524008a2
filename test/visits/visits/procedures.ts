/** The procedures of visits. */
import { z } from 'zod'
import { Problem } from '../../../src/errors/problem.ts'
import type { Call } from '../../../src/procedure/call.ts'
import { restMeta } from '../../../src/procedure/meta.ts'
import { paged } from '../../../src/procedure/paging.ts'
import { found, proceduresWith, unique } from '../../../src/procedure/procedure.ts'
import { create, write, writeIdempotent } from '../../../src/procedure/write.ts'
import type { HelperStore } from '../helpers/store.ts'
import type { TourStore } from '../tours/store.ts'
import {
  ListOwners,
  ListVisits,
  NewOwner,
  NewVisit,
  OneOwner,
  OneVisit,
  Owner,
  Owners,
  Visit,
  VisitChange,
  Visits,
} from './schema.ts'
import type { OwnerStore, VisitStore } from './store.ts'

export interface Stores {
  owners: OwnerStore
  visits: VisitStore
  helpers: HelperStore
  tours: TourStore
}
const { procedure } = proceduresWith<Stores>()

const tag = { name: 'visits', description: 'Visits, and the owners to whom they belong.' }

const at = new Date('2026-01-02T03:04:05Z')
export const example: Visit = {
  id: 7n,
  reference: 'V-1',
  at,
  urgent: false,
  note: null,
  closedAt: null,
}
const owner = { id: 3n, name: 'Ada' }
const all = '/owners/{ownerId}/visits'
export const one = `${all}/{visitId}` as const
export const noVisit = (id: bigint) => `There is no visit with the id ${id}`
const ofOne = { notFound: noVisit(7n), example }
const conflict = 'There is a visit with this reference already'
const closedAlready = 'This visit is closed already'

const noOwner = (id: bigint) => `There is no owner with the id ${id}`
/** Returns the stores. Throws NOT_FOUND unless the owner exists. */
async function withOwner(call: Call<Stores>, ownerId: bigint) {
  const { stores } = call
  found(await stores.owners.get(call, ownerId), noOwner(ownerId))
  return stores
}

const listOwners = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/owners',
      tag,
      summary: 'List owners',
      description: 'Returns a paginated list of owners, by name.',
      isPaged: true,
      example: [owner],
      sample: "petstore.listOwners.query({ prefix: 'A' })",
    }),
  )
  .input(ListOwners)
  .output(paged(Owners))
  .query(({ ctx, input }) => ctx.stores.owners.list(ctx, input))

const createOwner = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/owners',
      tag,
      summary: 'Add an owner',
      description: 'Adds an owner and returns it.',
      ...{ creates: '/owners/{id}', example: owner, exampleInput: { name: 'Ada' } },
      takesKey: true,
      sample: "petstore.createOwner.mutate({ name: 'Ada' })",
    }),
  )
  .input(NewOwner)
  .output(Owner)
  .mutation(({ ctx, input }) => create(ctx, ctx.stores.owners.newOwner, input))

const getOwner = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/owners/{ownerId}',
      tag,
      summary: 'Get an owner',
      description: 'Returns one owner.',
      notFound: noOwner(3n),
      example: owner,
      sample: 'petstore.getOwner.query({ ownerId: 3 })',
    }),
  )
  .input(OneOwner)
  .output(Owner)
  .query(async ({ ctx, input: { ownerId } }) => {
    const { id, name } = found(await ctx.stores.owners.get(ctx, ownerId), noOwner(ownerId))
    return { id, name }
  })

const listVisits = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: all,
      tag,
      summary: 'List the visits of an owner',
      description: 'Returns a paginated list of visits, the latest first.',
      isPaged: true,
      notFound: noOwner(3n),
      example: [example],
      sample: 'petstore.listVisits.query({ ownerId: 3, urgent: true })',
    }),
  )
  .input(ListVisits)
  .output(paged(Visits))
  .query(async ({ ctx, input }) => {
    const { visits } = await withOwner(ctx, input.ownerId)
    return await visits.list(ctx, input)
  })

const createVisit = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: all,
      tag,
      summary: 'Add a visit',
      description: 'Adds a visit of an owner and returns it.',
      creates: '/owners/{ownerId}/visits/{id}',
      takesKey: true,
      ...{ notFound: noOwner(3n), conflict, example, exampleInput: { reference: 'V-1', at } },
      sample: "petstore.createVisit.mutate({ ownerId: 3, reference: 'V-1', at: new Date() })",
    }),
  )
  .input(NewVisit)
  .output(Visit)
  .mutation(({ ctx, input }) =>
    writeIdempotent(ctx, async (call) => {
      const { visits } = await withOwner(call, input.ownerId)
      return await unique(visits.create(call, input), conflict)
    }),
  )

const getVisit = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: one,
      tag,
      summary: 'Get a visit',
      description: 'Returns one visit.',
      ...ofOne,
      sample: 'petstore.getVisit.query({ ownerId: 3, visitId: 7 })',
    }),
  )
  .input(OneVisit)
  .output(Visit)
  .query(async ({ ctx, input }) =>
    found(await ctx.stores.visits.get(ctx, input), noVisit(input.visitId)),
  )

const updateVisit = procedure
  .meta(
    restMeta({
      method: 'PATCH',
      path: one,
      tag,
      summary: 'Change a visit',
      description: 'Changes what the body names, and returns the visit.',
      ...ofOne,
      exampleInput: { note: null },
      sample: 'petstore.updateVisit.mutate({ ownerId: 3, visitId: 7, note: null })',
    }),
  )
  .input(VisitChange)
  .output(Visit)
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      const { visits } = call.stores
      await visits.update(call, input)
      return found(await visits.get(call, input), noVisit(input.visitId))
    }),
  )

const removeVisit = procedure
  .meta(
    restMeta({
      method: 'DELETE',
      path: one,
      tag,
      summary: 'Remove a visit',
      description: 'Removes a visit, which then has no helpers and is on no tour.',
      notFound: noVisit(7n),
      sample: 'petstore.removeVisit.mutate({ ownerId: 3, visitId: 7 })',
    }),
  )
  .input(OneVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      const { visits, helpers, tours } = call.stores
      const isRemoved = await visits.remove(call, input)
      found(isRemoved, noVisit(input.visitId))
      await tours.leaveOut(call, input.visitId)
      for (const helperId of await helpers.idsOf(call, input.visitId)) {
        await helpers.unlink(call, { ...input, helperId })
      }
    }),
  )

const closeVisit = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: `${one}/close`,
      tag,
      summary: 'Close a visit',
      description: 'Closes a visit that is open, and counts it for its owner.',
      ...ofOne,
      takesKey: true,
      conflict: closedAlready,
      sample: 'petstore.closeVisit.mutate({ ownerId: 3, visitId: 7 })',
    }),
  )
  .input(OneVisit)
  .output(Visit)
  .mutation(({ ctx, input }) =>
    writeIdempotent(ctx, async (call) => {
      const { owners, visits } = call.stores
      const wasOpen = await visits.close(call, input)
      const visit = found(await visits.get(call, input), noVisit(input.visitId))
      if (!wasOpen) throw new Problem('CONFLICT', closedAlready)
      await owners.count(call, input.ownerId)
      return visit
    }),
  )

export const visitProcedures = {
  ...{ listOwners, createOwner, getOwner },
  ...{ listVisits, createVisit, getVisit, updateVisit, removeVisit, closeVisit },
}
