/** Errors that a procedure throws: both surfaces answer them alike, and the log has their causes. */
import { TRPCError } from '@trpc/server'
import { beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { Pet } from '../../src/petstore/pets/schema.ts'
import { int64Input } from '../../src/procedure/fields.ts'
import { router } from '../../src/procedure/procedure.ts'
import { petOf } from '../support/pets.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { serviceForFile } from '../support/service.ts'

const example = petOf(42n, { categoryId: 1n })

const thrown: Record<number, () => Error> = {
  500: () => new RangeError('Too far'),
  503: () => new DatabaseUnavailableError(new Error('Away'), true),
  1401: () => ownError('UNAUTHORIZED'),
  1503: () => ownError('SERVICE_UNAVAILABLE'),
}
const ownError = (code: TRPCError['code']) =>
  new TRPCError({ code, message: 'Not now', cause: new Error('The reason') })

const served = router({
  getPet: procedure
    .meta(described('GET', '/pets/{petId}', { example }))
    .input(z.object({ petId: int64Input({ description: 'The pet.' }) }))
    .output(Pet)
    .query(async ({ input: { petId } }) => {
      throw thrown[Number(petId)]?.()
    }),
})

const service = await serviceForFile({}, { resources: resourcesOf(served) })
beforeEach(() => void service.logged.splice(0))

test.each([
  [500, 500, 'Internal server error', null, Array(4).fill('Too far')],
  [503, 503, expect.any(String), '5', expect.arrayContaining([expect.stringContaining('Away')])],
  [1401, 401, 'Not now', null, []],
  [1503, 503, 'Not now', '5', Array(4).fill('The reason')],
])('%i on REST, on tRPC and in a stream', async (petId, status, message, retryAfter, causes) => {
  const rest = await service.rest('GET', `/pets/${petId}`)
  const text = JSON.stringify([{ petId: 1 }, petId])
  const trpc = await service.fetch(`/trpc/getPet?input=${encodeURIComponent(JSON.stringify(text))}`)
  expect(rest.body).toMatchObject({ status, message })
  for (const answer of [rest, trpc]) {
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, retryAfter])
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
  }
  const batch = encodeURIComponent(JSON.stringify({ 0: text }))
  const stream = await service.fetch(`/trpc/getPet?batch=1&input=${batch}`, {
    headers: { 'trpc-accept': 'application/jsonl' },
  })
  expect(await stream.text()).toContain(`${(rest.body as { code: string }).code}`)
  const mixed = await service.fetch(
    `/trpc/nothing,getPet?batch=1&input=${encodeURIComponent(JSON.stringify({ 1: text }))}`,
  )
  expect([mixed.status, mixed.headers.get('retry-after')]).toEqual([207, retryAfter])
  const lines = service.logged.map((line) => JSON.parse(line))
  expect(lines.flatMap(({ err }) => err?.message ?? [])).toEqual(causes)
})
