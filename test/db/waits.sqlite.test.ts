/** Calls that wait while another process holds the write lock of the embedded database. */
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { Pet } from '../../src/petstore/pets/schema.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { addPet, petOf } from '../support/pets.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { abortable } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

const example = petOf(42n, { categoryId: 1n })

const served = router({
  ...petProcedures,
  addRex: procedure
    .meta(described('POST', '/pets/rex', { example }))
    .input(z.object({}))
    .output(Pet)
    .mutation(({ ctx }) =>
      write(ctx, (call) => {
        const { id: _, ...rex } = example
        return addPet(call.stores.pets, call, rex)
      }),
    ),
})

const service = await serviceForFile(
  { DATABASE_TIMEOUT: '25s' }, // longer than the test
  { resources: resourcesOf(served) },
)
expect((await service.rest('POST', '/pets/rex')).status).toBe(200) // the key is in the cache

const body = JSON.stringify({ name: 'Gone', categoryId: 3 })
test.each<[what: string, path: string, hasKey: boolean]>([
  ['a creation', '/pets', false],
  ['a creation with a key', '/pets', true],
  ['a transaction', '/pets/rex', false],
])('%s that is aborted has no later effect', async (what, path, hasKey) => {
  await service.sql('delete from pets')
  service.logged.length = 0
  await using other = await openSql(service.databaseUrl)
  await other('begin immediate')
  const port = Number(new URL(service.origin).port)
  const calls = await Promise.all(
    [1, 2, 3].map((index) => {
      const headers = hasKey ? [`Idempotency-Key: "gone ${index}"`] : []
      const parts = { key: service.key, headers, ...(path === '/pets' ? { body } : { body: '{}' }) }
      return abortable(port, `POST /v1${path}`, parts)
    }),
  )
  await setTimeout(50) // they wait for the lock
  for (const call of calls) call.resetAndDestroy()
  await vi.waitFor(
    () => expect(service.logged.filter((line) => /"status":499/.test(line))).toHaveLength(3),
    30_000,
  )
  await other('rollback')
  const after = { headers: { 'idempotency-key': `"after ${what}"` }, body }
  expect((await service.rest('POST', '/pets', after)).status).toBe(201)
  expect(await service.sql('select name from pets')).toEqual([{ name: 'Gone' }])
})
