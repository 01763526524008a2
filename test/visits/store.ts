/** Owners and visits in the database, and their tables. */
import type { Generated, Kysely, Selectable } from 'kysely'
import { inserts } from '../../db/coalesce/inserts.ts'
import { pages } from '../../db/coalesce/pages.ts'
import { addIndex, idColumn, tableOptions } from '../../db/columns.ts'
import type { Deadline } from '../../db/deadline.ts'
import { readBy } from '../../db/engine.ts'
import type { Page, Position } from '../../db/order.ts'
import { retry } from '../../db/retry.ts'
import { execute, statement, type Value } from '../../db/statement.ts'
import type { Database, Tables } from '../../db/tables.ts'
import { decimalOf, unitsOf } from '../../src/procedure/decimal.ts'
import {
  type ListVisits,
  type NewOwner,
  type NewVisit,
  newestFirst,
  type Owner,
  type Visit,
  type VisitChange,
} from './schema.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    test_owners: { id: Generated<bigint>; name: string; spent: bigint }
    test_visits: {
      id: Generated<bigint>
      owner_id: bigint
      reference: string
      /** Money is in cents, times are milliseconds. */
      price: bigint
      at: bigint
      urgent: bigint
      note: string | null
      created_at: bigint
      closed_at: bigint | null
      deleted_at: bigint | null
    }
  }
}

/** The migration of the tables, as it would stand in db/migrations. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('test_owners')
    .ifNotExists()
    .addColumn('id', ...idColumn(db))
    .addColumn('name', 'varchar(255)', (column) => column.notNull())
    .addColumn('spent', 'bigint', (column) => column.notNull())
    .modifyEnd(await tableOptions(db))
    .execute()
  await db.schema
    .createTable('test_visits')
    .ifNotExists()
    .addColumn('id', ...idColumn(db))
    .addColumn('owner_id', 'bigint', (column) => column.notNull())
    .addColumn('reference', 'varchar(40)', (column) => column.notNull())
    .addColumn('price', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('urgent', 'bigint', (column) => column.notNull())
    .addColumn('note', 'varchar(255)')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('closed_at', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .addUniqueConstraint('visits_reference', ['reference'])
    .modifyEnd(await tableOptions(db))
    .execute()
  const columns = ['owner_id', 'deleted_at', 'created_at', 'id']
  await addIndex(db, 'test_visits', 'test_visits_newest', columns)
}

export const ownerStore = (db: Database) => ({
  async create(owner: NewOwner, deadline: Deadline): Promise<Owner> {
    return { id: await insertOwner(db, owner, deadline), ...owner, spent: decimalOf(0n, 2) }
  },
  async get(id: bigint, deadline: Deadline): Promise<Owner | undefined> {
    const read = () => selectOwner(db, id, deadline)
    const { rows } = await retry(read, { repeatable: true, deadline })
    return rows[0] && { ...rows[0], spent: decimalOf(rows[0].spent, 2) }
  },
  /** Adds to what the owner has spent. */
  async charge(id: bigint, price: string, deadline: Deadline): Promise<void> {
    const charge = db
      .updateTable('test_owners')
      .set((eb) => ({ spent: eb('spent', '+', unitsOf(price, 2)) }))
      .where('id', '=', id)
    await execute(db, charge, deadline)
  },
})

const insertOwner = inserts('test_owners', ({ name }: NewOwner) => ({ name, spent: 0n }))

const selectOwner = statement((db, value: Value<bigint>) =>
  db
    .selectFrom('test_owners')
    .selectAll()
    .where(
      'id',
      '=',
      value((id) => id),
    ),
)

interface Place {
  ownerId: bigint
  visitId: bigint
}

export const visitStore = (db: Database) => ({
  /** The visits of an owner, newest first. */
  list: (query: ListVisits, deadline: Deadline): Promise<Page<Visit, Position>> =>
    readPage(db, query, deadline),

  async count(ownerId: bigint, deadline: Deadline): Promise<number> {
    const count = present(db, ownerId).select((eb) => eb.fn.countAll<bigint>().as('count'))
    const read = () => execute(db, count, deadline)
    const { rows } = await retry(read, { repeatable: true, deadline })
    return Number(rows[0]?.count)
  },

  async get({ ownerId, visitId }: Place, deadline: Deadline): Promise<Visit | undefined> {
    const query = present(db, ownerId).selectAll().where('id', '=', visitId)
    const { rows } = await retry(() => execute(db, query, deadline), { repeatable: true, deadline })
    return rows[0] && toVisit(rows[0])
  },

  /** Throws DuplicateError when there is a visit with this reference. */
  async create(visit: NewVisit, deadline: Deadline): Promise<Visit> {
    const { ownerId: _, ...fields } = visit
    const createdAt = new Date()
    const id = await insertVisit(db, { ...visit, createdAt }, deadline)
    return { id, ...fields, createdAt, closedAt: null }
  },

  /** Changes what is there, and returns whether there was something to change. */
  async update(change: VisitChange, deadline: Deadline): Promise<boolean> {
    const { price, urgent, note } = change
    return await changeOne(db, change, deadline, {
      owner_id: change.ownerId, // one column at least
      ...(price !== undefined && { price: unitsOf(price, 2) }),
      ...(urgent !== undefined && { urgent: BigInt(urgent) }),
      ...(note !== undefined && { note }),
    })
  },

  /** Closes an open visit, and returns whether there was one. */
  close: (place: Place, deadline: Deadline): Promise<boolean> =>
    changeOne(db, place, deadline, { closed_at: BigInt(Date.now()) }, true),

  /** Removes a visit, whose row stays, and returns whether there was one. */
  remove: (place: Place, deadline: Deadline): Promise<boolean> =>
    changeOne(db, place, deadline, { deleted_at: BigInt(Date.now()) }),
})

/** The visits of an owner that were not removed. */
const present = (db: Database, ownerId: bigint) =>
  db.selectFrom('test_visits').where('owner_id', '=', ownerId).where('deleted_at', 'is', null)

async function changeOne(
  db: Database,
  { ownerId, visitId }: Place,
  deadline: Deadline,
  columns: Partial<Selectable<Tables['test_visits']>>,
  isOpen = false,
): Promise<boolean> {
  const change = db
    .updateTable('test_visits')
    .set(columns)
    .where('id', '=', visitId)
    .where('owner_id', '=', ownerId)
    .where('deleted_at', 'is', null)
  const query = isOpen ? change.where('closed_at', 'is', null) : change
  const { numAffectedRows } = await execute(db, query, deadline)
  return numAffectedRows === 1n
}

const insertVisit = inserts('test_visits', (visit: NewVisit & { createdAt: Date }) => ({
  owner_id: visit.ownerId,
  reference: visit.reference,
  price: unitsOf(visit.price, 2),
  at: BigInt(visit.at.getTime()),
  urgent: BigInt(visit.urgent),
  note: visit.note,
  created_at: BigInt(visit.createdAt.getTime()),
}))

const readPage = pages({
  order: newestFirst,
  select(db, value: Value<ListVisits>, has) {
    const visits = db
      .selectFrom(readBy(db, 'test_visits', 'test_visits_newest'))
      .selectAll()
      .where(
        'owner_id',
        '=',
        value(({ ownerId }) => ownerId),
      )
      .where('deleted_at', 'is', null)
    const urgent = value((query) => BigInt(query.urgent === true))
    return has('urgent') ? visits.where('urgent', '=', urgent) : visits
  },
  item: toVisit,
})

function toVisit(row: Selectable<Tables['test_visits']>): Visit {
  const { id, reference, price, at, urgent, note, created_at, closed_at } = row
  return {
    id,
    reference,
    price: decimalOf(price, 2),
    at: new Date(Number(at)),
    urgent: urgent === 1n,
    note,
    createdAt: new Date(Number(created_at)),
    closedAt: closed_at === null ? null : new Date(Number(closed_at)),
  }
}
