/** The toys in the database, and their table. */
import { type Generated, type Kysely, sql } from 'kysely'
import { idColumn, tableOptions } from '../../db/columns.ts'
import type { Deadline } from '../../db/deadline.ts'
import { inserts } from '../../db/inserts.ts'
import { BY_ID, type Page, pageOf } from '../../db/order.ts'
import { retry } from '../../db/retry.ts'
import { execute } from '../../db/statement.ts'
import type { Database } from '../../db/tables.ts'
import type { ListToys, NewToy, Toy, ToyChange } from './schema.ts'

declare module '../../db/tables.ts' {
  interface Tables {
    toys: {
      id: Generated<bigint>
      label: string
      price: number
      washable: bigint
      made_at: bigint
      ages: string
    }
  }
}

/** The migration of the table, as it would stand in db/migrations. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('toys')
    .ifNotExists()
    .addColumn('id', ...idColumn(db))
    .addColumn('label', 'varchar(40)', (column) => column.notNull())
    .addColumn('price', sql`double precision`, (column) => column.notNull())
    .addColumn('washable', 'bigint', (column) => column.notNull())
    .addColumn('made_at', 'bigint', (column) => column.notNull())
    .addColumn('ages', 'varchar(255)', (column) => column.notNull())
    .addUniqueConstraint('toys_label', ['label'])
    .modifyEnd(await tableOptions(db))
    .execute()
}

export interface ToyStore {
  list(query: ListToys, deadline: Deadline): Promise<Page<Toy, bigint>>
  get(id: bigint, deadline: Deadline): Promise<Toy | undefined>
  /** Throws DuplicateError when there is a toy with this label. */
  create(toy: NewToy, deadline: Deadline): Promise<Toy>
  /** The toy as it is then; undefined when there is none. */
  update(change: ToyChange, deadline: Deadline): Promise<Toy | undefined>
  /** Whether there was one to remove. */
  remove(id: bigint, deadline: Deadline): Promise<boolean>
}

const insert = inserts('toys', ({ label, price, washable, madeAt, ages }: NewToy) => ({
  label,
  price,
  washable: BigInt(washable),
  made_at: BigInt(madeAt.getTime()),
  ages: `,${ages.join(',')},`,
}))

export function toyStore(db: Database): ToyStore {
  const get = async (id: bigint, deadline: Deadline) => {
    const query = db.selectFrom('toys').selectAll().where('id', '=', id)
    const read = () => execute(db, query, deadline)
    const { rows } = await retry(read, { repeatable: true, deadline })
    return rows[0] && toToy(rows[0])
  }
  return {
    async list({ limit, cursor, label, washable, ages = [] }, deadline) {
      let query = db
        .selectFrom('toys')
        .selectAll()
        .orderBy('id')
        .limit(limit + 1)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      if (label !== undefined) query = query.where('label', '=', label)
      if (washable !== undefined) query = query.where('washable', '=', BigInt(washable))
      for (const age of ages) query = query.where('ages', 'like', `%,${age},%`)
      const page = query // as it is now, for a second attempt
      const read = () => execute(db, page, deadline)
      const { rows } = await retry(read, { repeatable: true, deadline })
      return pageOf(rows.map(toToy), limit, BY_ID)
    },
    get,
    async create(toy, deadline) {
      return { id: await insert(db, toy, deadline), ...toy }
    },
    async update({ toyId, price, washable }, deadline) {
      const change = {
        ...(price !== undefined && { price }),
        ...(washable !== undefined && { washable: BigInt(washable) }),
      }
      if (Object.keys(change).length > 0) {
        await execute(db, db.updateTable('toys').set(change).where('id', '=', toyId), deadline)
      }
      return await get(toyId, deadline)
    },
    async remove(id, deadline) {
      const removal = db.deleteFrom('toys').where('id', '=', id)
      const { numAffectedRows } = await execute(db, removal, deadline)
      return numAffectedRows === 1n
    },
  }
}

interface Row {
  id: bigint
  label: string
  price: number
  washable: bigint
  made_at: bigint
  ages: string
}

const toToy = ({ id, label, price, washable, made_at, ages }: Row): Toy => ({
  id,
  label,
  price,
  washable: washable === 1n,
  madeAt: new Date(Number(made_at)),
  ages: ages.split(',').filter(Boolean).map(Number),
})
