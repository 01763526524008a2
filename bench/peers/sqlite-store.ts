/** The statements of the peers on SQLite, prepared once by node:sqlite. */
import { DatabaseSync } from 'node:sqlite'
import type { Pet, Store } from './by-hand.ts'

const database = new DatabaseSync((process.env.DATABASE_URL ?? '').slice('sqlite:'.length))
database.exec('pragma journal_mode = wal; pragma synchronous = full')

const SELECT = 'select id, name, category_id as categoryId, status from pets'
const list = database.prepare(`${SELECT} order by id limit ?`)
const listBehind = database.prepare(`${SELECT} where id > ? order by id limit ?`)
const listByStatus = database.prepare(`${SELECT} where status = ? order by id limit ?`)
const listByStatusBehind = database.prepare(
  `${SELECT} where status = ? and id > ? order by id limit ?`,
)
const insert = database.prepare('insert into pets (name, category_id, status) values (?, ?, ?)')
const get = database.prepare(`${SELECT} where id = ?`)

function select(limit: number, status: string | undefined, cursor: number | undefined) {
  if (cursor === undefined) {
    return status === undefined ? list.all(limit) : listByStatus.all(status, limit)
  }
  return status === undefined
    ? listBehind.all(cursor, limit)
    : listByStatusBehind.all(status, cursor, limit)
}

// The statements above select the columns of a Pet, which the types do not express.
export const sqliteStore: Store = {
  list: (...query) => select(...query) as unknown as Pet[],
  create: ({ name, categoryId, status }) =>
    Number(insert.run(name, categoryId, status).lastInsertRowid),
  get: (id) => get.get(id) as Pet | undefined,
}
