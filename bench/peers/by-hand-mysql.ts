/** The peer that the others are measured by on MySQL: node:http and prepared statements of mysql2. */
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import { type Pet, serve } from './by-hand.ts'

const pool = createPool({ uri: process.env.DATABASE_URL ?? '', connectionLimit: 10 })

const SELECT = 'select id, name, category_id as categoryId, status from pets'

serve({
  async list(limit, status) {
    const [pets] =
      status === undefined
        ? await pool.execute<(Pet & RowDataPacket)[]>(`${SELECT} order by id limit ?`, [`${limit}`])
        : await pool.execute<(Pet & RowDataPacket)[]>(
            `${SELECT} where status = ? order by id limit ?`,
            [status, `${limit}`],
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
})
