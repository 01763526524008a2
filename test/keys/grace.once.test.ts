/** The end of the grace period of a rotated key. */
import { afterEach, expect, test, vi } from 'vitest'
import { keys, type Service, startService } from '../support/service.ts'

let service: Service
afterEach(async () => {
  vi.restoreAllMocks()
  await service.stop()
})

test('a rotated key that is cached stops working when its grace period ends', async () => {
  service = await startService()
  const { id, key } = await keys.create(service.databaseUrl, 'shop')
  await keys.rotate(service.databaseUrl, id, new Date(Date.now() + 60_000))
  const use = async () => {
    const headers = { authorization: `Bearer ${key}` }
    return (await fetch(`${service.origin}/v1/pets`, { headers })).status
  }
  const now = Date.now.bind(Date)
  let passed = 0
  vi.spyOn(Date, 'now').mockImplementation(() => now() + passed)
  expect(await use()).toBe(200)
  passed = 30_000
  expect(await use()).toBe(200)
  passed = 60_001
  expect(await use()).toBe(401)
})
