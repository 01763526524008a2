/** The stores of owners and of visits: their tables and their statements. */
import type { ExpressionBuilder, Generated, Selectable } from 'kysely'
import {
  creation,
  type Database,
  execute,
  type Has,
  lockRow,
  lockRows,
  pages,
  pagesBy,
  retry,
  rowById,
  type Tables,
  type WithDeadline,
} from '../../../db/index.ts'
import {
  type ListOwners,
  type ListVisits,
  NAME,
  type NewOwner,
  type NewVisit,
  type OneVisit,
  type Owner,
  type Visit,
  type VisitChange,
} from './schema.ts'

declare module '../../../db/tables.ts' {
  interface Tables {
    owners: { id: Generated<bigint>; name: string; closed: bigint }
    visits: {
      id: Generated<bigint>
      owner_id: bigint
      reference: string
      /** Times are milliseconds; yes and no are 1 and 0. */
      at: bigint
      urgent: bigint
      note: string | null
      closed_at: bigint | null
    }
  }
}

export type OwnerStore = ReturnType<typeof ownerStore>

export const ownerStore = (db: Database) => ({
  /** Returns owners by name, then by id; with `prefix`, only those whose names begin so. */
  list: (call: WithDeadline, query: ListOwners) =>
    db.runner.run(pageOfOwners, query, call.deadline),
  get: (call: WithDeadline, id: bigint) => db.runner.run(ownerById, id, call.deadline),
  newOwner: newOwner(db),
  /** Counts a closed visit. */
  async count({ deadline }: WithDeadline, id: bigint): Promise<void> {
    const change = db.kysely.updateTable('owners').set((eb) => ({ closed: eb('closed', '+', 1n) }))
    await execute(db, change.where('id', '=', id), deadline)
  },
})

/** No name is greater: it has the last character of Unicode as often as a name may have one. */
const LAST_NAME = '\u{10ffff}'.repeat(NAME)

const pageOfOwners = pagesBy({
  id: 'owners.id',
  by: 'owners.name',
  select(db, _: Has<ListOwners>) {
    return db.kysely.selectFrom(db.engine.forceIndex('owners', 'owners_name')).select('name')
  },
  where(owners, value, has) {
    if (!has('prefix')) return owners
    const first = value(({ prefix = '' }) => prefix)
    const last = value(({ prefix = '' }) => prefix + LAST_NAME)
    return owners.where('name', '>=', first).where('name', '<=', last)
  },
  next: ({ id, name }) => `${id} ${name}`,
  item: ({ id, name }) => ({ id, name }),
})

const toNewOwner = (id: bigint, { name }: NewOwner): Owner => ({ id, name })

const newOwner = creation('owners', { name: 'name', closed: () => 0n }, toNewOwner)

const ownerById = rowById('owners', ['name', 'closed'])

export type VisitStore = ReturnType<typeof visitStore>

export const visitStore = (db: Database) => ({
  list: (call: WithDeadline, query: ListVisits) =>
    db.runner.run(pageOfVisits, query, call.deadline),

  async get({ deadline }: WithDeadline, place: OneVisit): Promise<Visit | undefined> {
    const query = db.kysely.selectFrom('visits').selectAll().where(isAt(place))
    const { rows } = await retry(() => execute(db, query, deadline), { repeatable: true, deadline })
    return rows[0] && toVisit(rows[0])
  },

  newVisit: newVisit(db),

  /** Locks a visit until the end of the transaction, if there is one. */
  lock: (call: WithDeadline, id: bigint) => lockRow(db, 'visits', id, call),

  /** Locks visits, and returns whether there are all of them. */
  lockAll: (call: WithDeadline, ids: bigint[]) => lockRows(db, 'visits', ids, call),

  /** Returns whether none of these visits, which are locked, is closed. */
  async areOpen({ deadline }: WithDeadline, ids: bigint[]): Promise<boolean> {
    const closed = db.kysely.selectFrom('visits').select('id').where('id', 'in', ids)
    const query = closed.where('closed_at', 'is not', null).limit(1)
    return (await execute(db, query, deadline)).rows.length === 0
  },

  /** Throws DuplicateError if there is a visit with this reference. */
  async create(call: WithDeadline, visit: NewVisit): Promise<Visit> {
    return toNewVisit(await newVisit(db).insert(call, visit), visit)
  },

  async update({ deadline }: WithDeadline, { urgent, note, ...place }: VisitChange): Promise<void> {
    const change = db.kysely.updateTable('visits').set({
      owner_id: place.ownerId, // an update needs one column at least
      ...(urgent !== undefined && { urgent: BigInt(urgent) }),
      ...(note !== undefined && { note }),
    })
    await execute(db, change.where(isAt(place)), deadline)
  },

  /** Closes an open visit, and returns whether it was open: of two concurrent callers, one finds it so. */
  async close({ deadline }: WithDeadline, place: OneVisit): Promise<boolean> {
    const change = db.kysely.updateTable('visits').set({ closed_at: db.engine.now })
    const open = change.where(isAt(place)).where('closed_at', 'is', null)
    return (await execute(db, open, deadline)).numAffectedRows === 1n
  },

  /** Removes a visit, and returns whether there was one. */
  async remove({ deadline }: WithDeadline, place: OneVisit): Promise<boolean> {
    const removal = db.kysely.deleteFrom('visits').where(isAt(place))
    return (await execute(db, removal, deadline)).numAffectedRows === 1n
  },
})

/** Returns the condition for one visit of an owner. */
const isAt =
  ({ ownerId, visitId }: OneVisit) =>
  (eb: ExpressionBuilder<Tables, 'visits'>) =>
    eb.and({ id: visitId, owner_id: ownerId })

const toNewVisit = (id: bigint, { ownerId: _, ...visit }: NewVisit): Visit => ({
  id,
  ...visit,
  closedAt: null,
})

const newVisit = creation(
  'visits',
  {
    owner_id: 'ownerId',
    reference: 'reference',
    at: ({ at }) => BigInt(at.getTime()),
    urgent: ({ urgent }) => BigInt(urgent),
    note: 'note',
  },
  toNewVisit,
)

/** The fields of a visit, whose id `pages` selects. */
export const fields = [
  'visits.reference',
  'visits.at',
  'visits.urgent',
  'visits.note',
  'visits.closed_at',
] as const

const pageOfVisits = pages({
  id: 'visits.id',
  order: 'descending',
  select(db, _: Has<ListVisits>) {
    return db.kysely.selectFrom(db.engine.forceIndex('visits', 'visits_owner')).select(fields)
  },
  where(visits, value, has) {
    const ofOwner = visits.where(
      'owner_id',
      '=',
      value(({ ownerId }) => ownerId),
    )
    const urgent = value((query) => BigInt(query.urgent === true))
    return has('urgent') ? ofOwner.where('urgent', '=', urgent) : ofOwner
  },
  item: toVisit,
})

export function toVisit(row: Omit<Selectable<Tables['visits']>, 'owner_id'>): Visit {
  const { id, reference, note } = row
  const dateOf = (time: bigint) => new Date(Number(time))
  const closedAt = row.closed_at === null ? null : dateOf(row.closed_at)
  return { id, reference, at: dateOf(row.at), urgent: row.urgent === 1n, note, closedAt }
}
