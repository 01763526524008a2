/** The procedures of visits. */
import { z } from 'zod'
import { Problem } from '../../src/errors/problem.ts'
import type { Call } from '../../src/procedure/call.ts'
import { paged } from '../../src/procedure/paging.ts'
import { found, proceduresWith, unique } from '../../src/procedure/procedure.ts'
import { create, write, writeIdempotent } from '../../src/procedure/write.ts'
import { described } from '../support/procedures.ts'
import type { Stores } from './router.ts'
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

const { procedure } = proceduresWith<Stores>()

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
  .meta(described('GET', '/owners', { isPaged: true, example: [owner] }))
  .input(ListOwners)
  .output(paged(Owners))
  .query(({ ctx, input }) => ctx.stores.owners.list(ctx, input))

const createOwner = procedure
  .meta(
    described('POST', '/owners', {
      ...{ creates: '/owners/{id}', example: owner, exampleInput: { name: 'Ada' } },
      takesKey: true,
    }),
  )
  .input(NewOwner)
  .output(Owner)
  .mutation(({ ctx, input }) => create(ctx, ctx.stores.owners.newOwner, input))

const getOwner = procedure
  .meta(described('GET', '/owners/{ownerId}', { notFound: noOwner(3n), example: owner }))
  .input(OneOwner)
  .output(Owner)
  .query(async ({ ctx, input: { ownerId } }) => {
    const { id, name } = found(await ctx.stores.owners.get(ctx, ownerId), noOwner(ownerId))
    return { id, name }
  })

const listVisits = procedure
  .meta(described('GET', all, { isPaged: true, notFound: noOwner(3n), example: [example] }))
  .input(ListVisits)
  .output(paged(Visits))
  .query(async ({ ctx, input }) => {
    const { visits } = await withOwner(ctx, input.ownerId)
    return await visits.list(ctx, input)
  })

const createVisit = procedure
  .meta(
    described('POST', all, {
      creates: '/owners/{ownerId}/visits/{id}',
      takesKey: true,
      ...{ notFound: noOwner(3n), conflict, example, exampleInput: { reference: 'V-1', at } },
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
  .meta(described('GET', one, ofOne))
  .input(OneVisit)
  .output(Visit)
  .query(async ({ ctx, input }) =>
    found(await ctx.stores.visits.get(ctx, input), noVisit(input.visitId)),
  )

const updateVisit = procedure
  .meta(described('PATCH', one, { ...ofOne, exampleInput: { note: null } }))
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
  .meta(described('DELETE', one, { notFound: noVisit(7n) }))
  .input(OneVisit)
  .output(z.void())
  .mutation(({ ctx, input }) =>
    write(ctx, async (call) => {
      const { visits, helpers, tours } = call.stores
      const isRemoved = await visits.remove(call, input)
      found(isRemoved || undefined, noVisit(input.visitId))
      await tours.leaveOut(call, input.visitId)
      for (const helperId of await helpers.idsOf(call, input.visitId)) {
        await helpers.unlink(call, { ...input, helperId })
      }
    }),
  )

const closeVisit = procedure
  .meta(described('POST', `${one}/close`, { ...ofOne, takesKey: true, conflict: closedAlready }))
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
