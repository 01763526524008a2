/** What can be done with owners and their visits: a router of its own, on the service's parts alone. */
import { TRPCError } from '@trpc/server'
import { z } from 'zod'
import type { Database } from '../../db/tables.ts'
import type { Context, Stores } from '../../src/procedure/context.ts'
import { found, unique } from '../../src/procedure/found.ts'
import { idempotentWrite } from '../../src/procedure/idempotent-write.ts'
import { paged } from '../../src/procedure/paging.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { described } from '../support/procedures.ts'
import {
  ListVisits,
  NewOwner,
  NewVisit,
  newestFirst,
  OneOwner,
  OneVisit,
  Owner,
  Visit,
  VisitChange,
  VisitCount,
  Visits,
} from './schema.ts'
import { ownerStore, visitStore } from './store.ts'

/** In the service itself these would be lines of `Stores`, which a test cannot add to. */
const createVisitStores = (db: Database) => ({ owners: ownerStore(db), visits: visitStore(db) })
const storesOf = ({ stores }: Context) => stores as unknown as ReturnType<typeof createVisitStores>

const owner: Owner = { id: 3n, name: 'Ada', spent: '2.50' }
const example: Visit = {
  id: 7n,
  reference: 'V-1',
  price: '2.50',
  at: new Date('2026-01-02T03:04:05Z'),
  urgent: false,
  note: null,
  createdAt: new Date('2026-01-01T00:00:00Z'),
  closedAt: null,
}
const exampleInput = { reference: 'V-1', price: '2.5', at: '2026-01-02T03:04:05Z' }
const conflict = 'There is a visit with this reference already'
const closedAlready = 'This visit is closed already'

const noOwner = (id: bigint) => `There is no owner with the id ${id}`
const noVisit = (id: bigint) => `There is no visit with the id ${id}`
const notFound = noVisit(example.id)

const owners = router({
  create: procedure
    .meta(
      described('POST', '/owners', {
        creates: '/owners/{id}',
        tag: 'owners',
        example: owner,
        exampleInput: { name: 'Ada' },
      }),
    )
    .input(NewOwner)
    .output(Owner)
    .mutation(
      idempotentWrite(({ ctx, input }) => storesOf(ctx).owners.create(input, ctx.deadline), {
        oneStatement: true,
      }),
    ),

  get: procedure
    .meta(
      described('GET', '/owners/{ownerId}', {
        notFound: noOwner(owner.id),
        tag: 'owners',
        example: owner,
      }),
    )
    .input(OneOwner)
    .output(Owner)
    .query(async ({ ctx, input: { ownerId } }) =>
      found(await storesOf(ctx).owners.get(ownerId, ctx.deadline), noOwner(ownerId)),
    ),
})

const tag = 'visits'
const visits = router({
  list: procedure
    .meta(
      described('GET', '/owners/{ownerId}/visits', {
        paged: true,
        notFound: noOwner(owner.id),
        tag,
        summary: 'List visits',
        description: 'Returns a page of visits, newest first.',
        example: [example],
      }),
    )
    .input(ListVisits)
    .output(Visits)
    .query(
      paged({ by: newestFirst }, async ({ ctx, input }) => {
        const { owners, visits } = storesOf(ctx)
        found(await owners.get(input.ownerId, ctx.deadline), noOwner(input.ownerId))
        return await visits.list(input, ctx.deadline)
      }),
    ),

  create: procedure
    .meta(
      described('POST', '/owners/{ownerId}/visits', {
        creates: '/owners/{ownerId}/visits/{id}',
        notFound: noOwner(owner.id),
        conflict,
        tag,
        description: 'Adds a visit, unless there is one with this reference.',
        example,
        exampleInput,
      }),
    )
    .input(NewVisit)
    .output(Visit)
    .mutation(
      idempotentWrite(async ({ ctx, input }) => {
        const { owners, visits } = storesOf(ctx)
        found(await owners.get(input.ownerId, ctx.deadline), noOwner(input.ownerId))
        return await unique(visits.create(input, ctx.deadline), conflict)
      }),
    ),

  get: procedure
    .meta(described('GET', '/owners/{ownerId}/visits/{visitId}', { notFound, tag, example }))
    .input(OneVisit)
    .output(Visit)
    .query(async ({ ctx, input }) =>
      found(await storesOf(ctx).visits.get(input, ctx.deadline), noVisit(input.visitId)),
    ),

  // It is found, though it stands behind what has a parameter in its place.
  count: procedure
    .meta(described('GET', '/owners/{ownerId}/visits/count', { tag, example: { count: 3 } }))
    .input(OneOwner)
    .output(VisitCount)
    .query(async ({ ctx, input: { ownerId } }) => ({
      count: await storesOf(ctx).visits.count(ownerId, ctx.deadline),
    })),

  update: procedure
    .meta(
      described('PATCH', '/owners/{ownerId}/visits/{visitId}', {
        notFound,
        tag,
        example,
        exampleInput: { price: '3', note: null },
      }),
    )
    .input(VisitChange)
    .output(Visit)
    .mutation(
      write(async ({ ctx, input }) => {
        const { visits } = storesOf(ctx)
        await visits.update(input, ctx.deadline)
        return found(await visits.get(input, ctx.deadline), noVisit(input.visitId))
      }),
    ),

  remove: procedure
    .meta(described('DELETE', '/owners/{ownerId}/visits/{visitId}', { notFound, tag }))
    .input(OneVisit)
    .output(z.void())
    .mutation(
      write(async ({ ctx, input }) => {
        const isRemoved = await storesOf(ctx).visits.remove(input, ctx.deadline)
        found(isRemoved || undefined, noVisit(input.visitId))
      }),
    ),

  close: procedure
    .meta(
      described('POST', '/owners/{ownerId}/visits/{visitId}/close', {
        repeatable: true,
        notFound,
        conflict: closedAlready,
        tag,
        example: { ...example, closedAt: example.at },
      }),
    )
    .input(OneVisit)
    .output(Visit)
    .mutation(
      idempotentWrite(async ({ ctx, input }) => {
        const { owners, visits } = storesOf(ctx)
        const isClosed = await visits.close(input, ctx.deadline)
        const visit = found(await visits.get(input, ctx.deadline), noVisit(input.visitId))
        if (!isClosed) throw new TRPCError({ code: 'CONFLICT', message: closedAlready })
        await owners.charge(input.ownerId, visit.price, ctx.deadline)
        return visit
      }),
    ),
})

export const visitRouter = router({ owners, visits })

/** What is served in place of the service's own resources. */
export const visitResources = {
  router: visitRouter,
  tags: { owners: 'Who comes with an animal.', visits: 'When they come.' },
  // The chassis hands on the stores that it was given, whichever they are.
  createStores: (db: Database) => createVisitStores(db) as unknown as Stores,
}
