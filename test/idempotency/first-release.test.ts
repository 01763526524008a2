/** Rows of the first release, whose instances may run beside this one. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

test('rows of the first release are answered, and what it reads is written', async () => {
  const [row] = await service.sql('select id from api_keys where name = ?', ['test'])
  const pet = { name: 'Rex', categoryId: 9007199254740993n, status: 'pending' }
  const fingerprint = sha256(JSON.stringify(['Rex', '9007199254740993', 'pending']))
  // As the first release writes it: it knows neither of the new columns.
  await service.sql(
    'insert into idempotency_keys (api_key_id, key_hash, fingerprint, pet_id, created_at) values (?, ?, ?, ?, ?)',
    [row?.id, sha256('legacy'), fingerprint, 4711n, Date.now()],
  )
  const create = (key: string, body: unknown) =>
    service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })
  expect(await create('legacy', pet)).toMatchObject({
    status: 201,
    body: { id: 4711, name: 'Rex', status: 'pending' },
  })
  expect((await create('legacy', { ...pet, name: 'Bella' })).status).toBe(422)

  const fresh = await create('fresh', pet)
  const [written] = await service.sql(
    'select fingerprint, pet_id from idempotency_keys where key_hash = ?',
    [sha256('fresh')],
  )
  const { id } = fresh.body as { id: number }
  expect(written).toEqual({ fingerprint, pet_id: BigInt(id) })
})
