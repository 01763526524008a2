/** A process that could not read the folder of its migrations once. */
import { expect, test } from 'vitest'
import { startInstance, until } from '../support/instance.ts'
import { failingFolder } from '../support/watched.ts'

test('a folder of migrations that could not be read is read again: ready in the end', async () => {
  const service = await startInstance(failingFolder())
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await until('it is ready', async () => (await fetch(`${service.origin}/readyz`)).ok)
  await service.stop()
})
