/** The statements of hand-written peers on MySQL, prepared by mysql2. */
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import type { Pet, Store } from './by-hand.ts'

const pool = createPool({ uri: process.env.DATABASE_URL ?? '', connectionLimit: 10 })

const SELECT = 'select id, name, category_id as categoryId, status from pets'

export const mysqlStore: Store = {
  async list(limit, status, cursor) {
    const conditions: string[] = []
    const values: string[] = []
    if (status !== undefined) {
      conditions.push('status = ?')
      values.push(status)
    }
    if (cursor !== undefined) {
      conditions.push('id > ?')
      values.push(`${cursor}`)
    }
    const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
    const [pets] = await pool.execute<(Pet & RowDataPacket)[]>(
      `${SELECT} ${where} order by id limit ?`,
      [...values, `${limit}`],
    )
    return pets
  },
  async create({ name, categoryId, status }) {
    const [{ insertId }] = await pool.execute<ResultSetHeader>(
      'insert into pets (name, category_id, status) values (?, ?, ?)',
      [name, categoryId, status],
    )
    return insertId
  },
  async get(id) {
    const [[pet]] = await pool.execute<(Pet & RowDataPacket)[]>(`${SELECT} where id = ?`, [id])
    return pet
  },
}
