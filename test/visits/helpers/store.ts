/** The store of helpers: their table, that of the links to visits, and the migration of both. */
import type { ColumnDefinitionBuilder, Generated } from 'kysely'
import { createTable } from '../../../db/columns.ts'
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
import { fields, toVisit } from '../store.ts'
import type { Helper, HelperOfVisit, ListVisitsOfHelper, NewHelper } from './schema.ts'

declare module '../../../db/tables.ts' {
  interface Tables {
    /** `visits` is the number of links. */
    test_helpers: { id: Generated<bigint>; name: string; visits: bigint }
    test_links: { id: Generated<bigint>; visit_id: bigint; helper_id: bigint }
  }
}

export async function up(db: Database): Promise<void> {
  const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
  await createTable(db, 'test_helpers', (table) =>
    table.addColumn('name', 'varchar(40)', notNull).addColumn('visits', 'bigint', notNull),
  )
  await createTable(db, 'test_links', (table) =>
    table
      .addColumn('visit_id', 'bigint', notNull)
      .addColumn('helper_id', 'bigint', notNull)
      // Each begins with what its list is of.
      .addUniqueConstraint('test_links_visit', ['visit_id', 'helper_id'])
      .addUniqueConstraint('test_links_helper', ['helper_id', 'visit_id']),
  )
}

/** Maximum number of links that one transaction removes. */
export const PIECE = 1_000

export const helperStore = (db: Database) => ({
  get: (call: WithDeadline, id: bigint) => db.runner.run(helperById, id, call.deadline),

  newHelper: newHelper(db),

  /** Returns the visits of a helper, by ascending id. */
  listVisits: (call: WithDeadline, query: ListVisitsOfHelper) =>
    db.runner.run(pageOfVisits, query, call.deadline),

  /** Links a visit, which is locked, to a helper, unless it is. Returns whether there is such a helper. */
  async link(call: WithDeadline, { visitId, helperId }: HelperOfVisit): Promise<boolean> {
    if (!(await lockRow(db, 'test_helpers', helperId, call))) return false
    const link = { visit_id: visitId, helper_id: helperId }
    try {
      await execute(db, db.kysely.insertInto('test_links').values(link), call.deadline)
      await count(db, call, helperId, 1n)
    } catch (error) {
      if (!(error instanceof DuplicateError)) throw error
    }
    return true
  },

  /** Removes the link of a visit, which is locked, to a helper, if there is one. Returns whether there is such a helper. */
  async unlink(call: WithDeadline, { visitId, helperId }: HelperOfVisit): Promise<boolean> {
    if (!(await lockRow(db, 'test_helpers', helperId, call))) return false
    const links = db.kysely.deleteFrom('test_links').where('visit_id', '=', visitId)
    const removal = links.where('helper_id', '=', helperId)
    const { numAffectedRows = 0n } = await execute(db, removal, call.deadline)
    await count(db, call, helperId, -numAffectedRows)
    return true
  },

  /** Returns the ids of the helpers of a visit, in the order in which they are locked. */
  async idsOf({ deadline }: WithDeadline, visitId: bigint): Promise<bigint[]> {
    const links = db.kysely
      .selectFrom('test_links')
      .select('helper_id')
      .where('visit_id', '=', visitId)
    const { rows } = await execute(db, links.orderBy('helper_id'), deadline)
    return rows.map(({ helper_id }) => helper_id)
  },

  /**
   * Removes up to `PIECE` links of a helper, and at last the helper. Returns whether it is removed, or undefined if
   * there is no such helper.
   */
  async removeSome(call: WithDeadline, helperId: bigint): Promise<boolean | undefined> {
    if (!(await lockRow(db, 'test_helpers', helperId, call))) return undefined
    const links = db.kysely.selectFrom('test_links').select('id').where('helper_id', '=', helperId)
    const { rows } = await execute(db, links.limit(PIECE), call.deadline)
    if (rows.length === 0) {
      await execute(
        db,
        db.kysely.deleteFrom('test_helpers').where('id', '=', helperId),
        call.deadline,
      )
      return true
    }
    const ids = rows.map(({ id }) => id)
    await execute(db, db.kysely.deleteFrom('test_links').where('id', 'in', ids), call.deadline)
    await count(db, call, helperId, -BigInt(ids.length))
    return false
  },
})

/** Adds to the number of visits of a helper. */
async function count(db: Database, { deadline }: WithDeadline, id: bigint, by: bigint) {
  const change = db.kysely
    .updateTable('test_helpers')
    .set((eb) => ({ visits: eb('visits', '+', by) }))
  await execute(db, change.where('id', '=', id), deadline)
}

const newHelper = creation(
  'test_helpers',
  { name: 'name', visits: () => 0n },
  (id: bigint, { name }: NewHelper): Helper => ({ id, name, visits: 0n }),
)

const helperById = rowById('test_helpers', ['name', 'visits'])

const pageOfVisits = pages({
  id: 'test_links.visit_id',
  select(db, _: Has<ListVisitsOfHelper>) {
    return db.kysely
      .selectFrom(db.engine.forceIndex('test_links', 'test_links_helper'))
      .innerJoin('test_visits', 'test_visits.id', 'test_links.visit_id')
      .select(fields)
  },
  where(visits, value) {
    return visits.where(
      'test_links.helper_id',
      '=',
      value(({ helperId }) => helperId),
    )
  },
  item: toVisit,
})
