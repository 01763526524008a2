/** The store of tours: their table, and that of their stops. */
import type { Generated, Selectable } from 'kysely'
import {
  creation,
  type Database,
  execute,
  pagesBy,
  retry,
  rowById,
  type Tables,
  type WithDeadline,
} from '../../../db/index.ts'
import { type Page, timeCursorOf } from '../../../src/procedure/paging.ts'
import type { ListTours, NewTour, State, Tour } from './schema.ts'

declare module '../../../db/tables.ts' {
  interface Tables {
    tours: {
      id: Generated<bigint>
      driver: string
      vehicle: Tour['vehicle']
      begins_at: bigint
      ends_at: bigint
      state: State
    }
    /** The visits of tours; `place` is the place in the order of the tour. */
    stops: { id: Generated<bigint>; tour_id: bigint; place: bigint; visit_id: bigint }
  }
}

export type TourStore = ReturnType<typeof tourStore>

export const tourStore = (db: Database) => ({
  /** Returns tours by the time at which they begin, then by id. */
  async list(call: WithDeadline, query: ListTours): Promise<Page<Tour>> {
    const { items, next } = await db.runner.run(pageOfTours, query, call.deadline)
    return { items: await withVisits(db, call, items), next }
  },

  async get(call: WithDeadline, id: bigint): Promise<Tour | undefined> {
    const row = await db.runner.run(tourById, id, call.deadline)
    const [tour] = await withVisits(db, call, row ? [toTour(row)] : [])
    return tour
  },

  /** Adds a tour, whose visits exist and are locked. */
  async create(call: WithDeadline, tour: NewTour): Promise<Tour> {
    const id = await newTour(db).insert(call, tour)
    const stops = tour.visitIds.map((visit_id, place) => ({
      ...{ tour_id: id, place: BigInt(place), visit_id },
    }))
    await execute(db, db.kysely.insertInto('stops').values(stops), call.deadline)
    return toNewTour(id, tour)
  },

  /** Changes the state of a tour that has another one, and returns whether it had that: of two callers, one finds it so. */
  async move({ deadline }: WithDeadline, id: bigint, from: State, to: State): Promise<boolean> {
    const change = db.kysely.updateTable('tours').set({ state: to })
    const ofOne = change.where('id', '=', id).where('state', '=', from)
    return (await execute(db, ofOne, deadline)).numAffectedRows === 1n
  },

  /** Takes a visit, which is locked, from all tours. */
  async leaveOut({ deadline }: WithDeadline, visitId: bigint): Promise<void> {
    await execute(db, db.kysely.deleteFrom('stops').where('visit_id', '=', visitId), deadline)
  },
})

/** Returns the tours with their visits, which one statement reads for all of them. */
async function withVisits(db: Database, { deadline }: WithDeadline, tours: Tour[]) {
  if (tours.length === 0) return []
  const ids = tours.map(({ id }) => id)
  const stops = db.kysely.selectFrom('stops').select(['tour_id', 'visit_id'])
  const query = stops.where('tour_id', 'in', ids).orderBy('tour_id').orderBy('place')
  const { rows } = await retry(() => execute(db, query, deadline), { repeatable: true, deadline })
  const byTour = Map.groupBy(rows, ({ tour_id }) => tour_id)
  return tours.map((tour) => ({
    ...tour,
    visitIds: (byTour.get(tour.id) ?? []).map(({ visit_id }) => visit_id),
  }))
}

const toNewTour = (id: bigint, tour: NewTour): Tour => ({ id, ...tour, state: 'planned' })

const newTour = creation(
  'tours',
  {
    driver: 'driver',
    vehicle: 'vehicle',
    begins_at: ({ from }) => BigInt(from.getTime()),
    ends_at: ({ until }) => BigInt(until.getTime()),
    state: () => 'planned' as const,
  },
  toNewTour,
)

const columns = ['driver', 'vehicle', 'begins_at', 'ends_at', 'state'] as const

const pageOfTours = pagesBy({
  id: 'tours.id',
  by: 'tours.begins_at',
  select: ({ kysely }) => kysely.selectFrom('tours').select(columns),
  next: ({ begins_at, id }) => timeCursorOf(begins_at, id),
  item: toTour,
})

const tourById = rowById('tours', columns)

/** Returns a tour without its visits. */
function toTour({ begins_at, ends_at, ...tour }: Selectable<Tables['tours']>): Tour {
  const [from, until] = [new Date(Number(begins_at)), new Date(Number(ends_at))]
  const { id, driver, vehicle, state } = tour
  return { id, driver, vehicle, from, until, state, visitIds: [] }
}
