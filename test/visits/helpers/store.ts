/** The store of helpers: their table, and that of the links to visits. */
import type { Generated } from 'kysely'
import {
  creation,
  type Database,
  DuplicateError,
  execute,
  type Has,
  lockRow,
  pages,
  rowById,
  type WithDeadline,
} from '../../../db/index.ts'
import { fields, toVisit } from '../visits/store.ts'
import type { Helper, HelperOfVisit, ListVisitsOfHelper, NewHelper } from './schema.ts'

declare module '../../../db/tables.ts' {
  interface Tables {
    /** `visits` is the number of links. */
    helpers: { id: Generated<bigint>; name: string; visits: bigint }
    links: { id: Generated<bigint>; visit_id: bigint; helper_id: bigint }
  }
}

/** Maximum number of links that one transaction removes. */
export const PIECE = 1_000

export type HelperStore = ReturnType<typeof helperStore>

export const helperStore = (db: Database) => ({
  get: (call: WithDeadline, id: bigint) => db.runner.run(helperById, id, call.deadline),

  newHelper: newHelper(db),

  /** Returns the visits of a helper, by ascending id. */
  listVisits: (call: WithDeadline, query: ListVisitsOfHelper) =>
    db.runner.run(pageOfVisits, query, call.deadline),

  /** Links a visit, which is locked, to a helper, unless it is. Returns whether there is such a helper. */
  async link(call: WithDeadline, { visitId, helperId }: HelperOfVisit): Promise<boolean> {
    if (!(await lockRow(db, 'helpers', helperId, call))) return false
    const link = { visit_id: visitId, helper_id: helperId }
    try {
      await execute(db, db.kysely.insertInto('links').values(link), call.deadline)
      await count(db, call, helperId, 1n)
    } catch (error) {
      if (!(error instanceof DuplicateError)) throw error
    }
    return true
  },

  /** Removes the link of a visit, which is locked, to a helper, if there is one. Returns whether there is such a helper. */
  async unlink(call: WithDeadline, { visitId, helperId }: HelperOfVisit): Promise<boolean> {
    if (!(await lockRow(db, 'helpers', helperId, call))) return false
    const links = db.kysely.deleteFrom('links').where('visit_id', '=', visitId)
    const removal = links.where('helper_id', '=', helperId)
    const { numAffectedRows = 0n } = await execute(db, removal, call.deadline)
    await count(db, call, helperId, -numAffectedRows)
    return true
  },

  /** Returns the ids of the helpers of a visit, in the order in which they are locked. */
  async idsOf({ deadline }: WithDeadline, visitId: bigint): Promise<bigint[]> {
    const links = db.kysely.selectFrom('links').select('helper_id').where('visit_id', '=', visitId)
    const { rows } = await execute(db, links.orderBy('helper_id'), deadline)
    return rows.map(({ helper_id }) => helper_id)
  },

  /**
   * Removes up to `PIECE` links of a helper, and at last the helper. Returns whether there is such a helper, and whether
   * it is removed now.
   */
  async removeSome(call: WithDeadline, helperId: bigint) {
    const isThere = await lockRow(db, 'helpers', helperId, call)
    const links = db.kysely.selectFrom('links').select('id').where('helper_id', '=', helperId)
    const { rows } = await execute(db, links.limit(PIECE), call.deadline)
    const ids = rows.map(({ id }) => id)
    if (ids.length === 0) {
      await execute(db, db.kysely.deleteFrom('helpers').where('id', '=', helperId), call.deadline)
      return { isThere, isLast: true }
    }
    await execute(db, db.kysely.deleteFrom('links').where('id', 'in', ids), call.deadline)
    await count(db, call, helperId, -BigInt(ids.length))
    return { isThere, isLast: false }
  },
})

/** Adds to the number of visits of a helper. */
async function count(db: Database, { deadline }: WithDeadline, id: bigint, by: bigint) {
  const change = db.kysely.updateTable('helpers').set((eb) => ({ visits: eb('visits', '+', by) }))
  await execute(db, change.where('id', '=', id), deadline)
}

const newHelper = creation(
  'helpers',
  { name: 'name', visits: () => 0n },
  (id: bigint, { name }: NewHelper): Helper => ({ id, name, visits: 0n }),
)

const helperById = rowById('helpers', ['name', 'visits'])

const pageOfVisits = pages({
  id: 'links.visit_id',
  select(db, _: Has<ListVisitsOfHelper>) {
    return db.kysely
      .selectFrom(db.engine.forceIndex('links', 'links_helper'))
      .innerJoin('visits', 'visits.id', 'links.visit_id')
      .select(fields)
  },
  where(visits, value) {
    return visits.where(
      'links.helper_id',
      '=',
      value(({ helperId }) => helperId),
    )
  },
  item: toVisit,
})
