/** The procedures of tours, which have a list of ids and three states. */
import { Problem } from '../../../src/errors/problem.ts'
import type { Call } from '../../../src/procedure/call.ts'
import { restMeta } from '../../../src/procedure/meta.ts'
import { paged } from '../../../src/procedure/paging.ts'
import { found, proceduresWith } from '../../../src/procedure/procedure.ts'
import { writeIdempotent } from '../../../src/procedure/write.ts'
import type { VisitStore } from '../visits/store.ts'
import { ListTours, NewTour, OneTour, RULES, type State, Tour, Tours } from './schema.ts'
import type { TourStore } from './store.ts'

type Stores = { visits: VisitStore; tours: TourStore }
const { procedure } = proceduresWith<Stores>()

const tag = { name: 'tours', description: 'Tours to visits.' }
const from = new Date('2026-01-02T08:00:00Z')
const until = new Date('2026-01-02T12:00:00Z')
const example: Tour = {
  ...{ id: 9n, driver: 'Eve', vehicle: 'car', from, until },
  ...{ state: 'planned', visitIds: [7n] },
}
const noTour = (id: bigint) => `There is no tour with the id ${id}`
const noVisit = 'One of these visits does not exist'
const closed = 'One of these visits is closed'
const notPlanned = 'This tour has started already'
const notStarted = 'This tour has not started, or has ended already'

const listTours = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/tours',
      isPaged: true,
      tag,
      summary: 'List all tours',
      description: 'Returns a paginated list of tours, by the time at which they begin.',
      example: [example],
      sample: 'petstore.listTours.query({ limit: 20 })',
    }),
  )
  .input(ListTours.prefault({}))
  .output(paged(Tours))
  .query(({ ctx, input }) => ctx.stores.tours.list(ctx, input))

const planTour = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/tours',
      creates: '/tours/{id}',
      takesKey: true,
      tag,
      summary: 'Plan a tour',
      description: 'Plans a tour to visits that are open.',
      notFound: noVisit,
      conflict: closed,
      rules: RULES,
      example,
      exampleInput: { driver: 'Eve', from, until, visitIds: [7n, 8n] },
      sample: `petstore.planTour.mutate({
  driver: 'Eve',
  from: new Date('2026-01-02T08:00:00Z'),
  until: new Date('2026-01-02T12:00:00Z'),
  visitIds: [7],
})`,
    }),
  )
  .input(NewTour)
  .output(Tour)
  .mutation(({ ctx, input }) =>
    writeIdempotent(ctx, async (call) => {
      const { tours, visits } = call.stores
      // Locked before they are read, so that they stay open until the tour is there.
      const areThere = await visits.lockAll(call, input.visitIds)
      found(areThere, noVisit)
      if (!(await visits.areOpen(call, input.visitIds))) throw new Problem('CONFLICT', closed)
      return await tours.create(call, input)
    }),
  )

const getTour = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/tours/{tourId}',
      tag,
      summary: 'Get a tour',
      description: 'Returns one tour.',
      notFound: noTour(example.id),
      example,
      sample: 'petstore.getTour.query({ tourId: 9 })',
    }),
  )
  .input(OneTour)
  .output(Tour)
  .query(async ({ ctx, input: { tourId } }) =>
    found(await ctx.stores.tours.get(ctx, tourId), noTour(tourId)),
  )

/** Changes the state of a tour. Throws CONFLICT with this message if it had another one. */
const moved = (ctx: Call<Stores>, id: bigint, [from, to]: [State, State], message: string) =>
  writeIdempotent(ctx, async (call) => {
    const { tours } = call.stores
    const hadState = await tours.move(call, id, from, to)
    const tour = found(await tours.get(call, id), noTour(id))
    if (!hadState) throw new Problem('CONFLICT', message)
    return tour
  })

const startTour = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/tours/{tourId}/start',
      takesKey: true,
      tag,
      summary: 'Start a tour',
      description: 'Starts a tour that is planned.',
      notFound: noTour(example.id),
      conflict: notPlanned,
      example: { ...example, state: 'started' },
      sample: 'petstore.startTour.mutate({ tourId: 9 })',
    }),
  )
  .input(OneTour)
  .output(Tour)
  .mutation(({ ctx, input }) => moved(ctx, input.tourId, ['planned', 'started'], notPlanned))

const finishTour = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/tours/{tourId}/finish',
      takesKey: true,
      after: 'startTour',
      tag,
      summary: 'Finish a tour',
      description: 'Finishes a tour that has started.',
      notFound: noTour(example.id),
      conflict: notStarted,
      example: { ...example, state: 'finished' },
      sample: 'petstore.finishTour.mutate({ tourId: 9 })',
    }),
  )
  .input(OneTour)
  .output(Tour)
  .mutation(({ ctx, input }) => moved(ctx, input.tourId, ['started', 'finished'], notStarted))

export const tourProcedures = { listTours, planTour, getTour, startTour, finishTour }
