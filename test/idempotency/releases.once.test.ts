/** A repetition with an Idempotency-Key after a release that adds to the operation (docs/versions.md). */
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { idempotentWrite } from '../../src/procedure/idempotent-write.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { newDatabase } from '../support/database.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { errorOf, startService, trpcClient } from '../support/service.ts'

const Place = z.object({ city: z.string() })
const NewJob = z.object({
  title: z.string(),
  place: Place.optional(),
  from: Place.nullable().optional(),
  to: Place.nullable().optional(),
  fixed: Place.readonly().optional(),
  stops: z.array(Place).nullable().optional(),
  steps: z.array(z.object({ name: z.string() })).default([]),
})
const Job = z.object({ id: z.string() })

/** The routers of two releases: the input and the output of `createJob` may differ. */
const release = (input: z.ZodObject, output: z.ZodObject, result: Record<string, unknown>) =>
  router({
    createJob: procedure
      .meta(
        described('POST', '/jobs', {
          creates: '/jobs',
          example: result,
          exampleInput: { title: 'x' },
        }),
      )
      .input(input.meta({ id: 'NewJob' }))
      .output(output.meta({ id: 'Job' }))
      .mutation(idempotentWrite(async () => result)),
  })

const first = release(NewJob, Job, { id: 'a' })
const graz = { city: 'Graz' }
const body = {
  title: 'x',
  place: graz,
  from: null,
  to: graz,
  fixed: graz,
  stops: null,
  steps: [{ name: 'y' }],
}
const FloorPlace = Place.extend({ floor: z.int().default(0) })

test.each([
  [
    'a field of the output',
    release(NewJob, Job.extend({ state: z.string() }), { id: 'b', state: 'new' }),
  ],
  [
    'a parameter with a default',
    release(NewJob.extend({ urgent: z.boolean().default(false) }), Job, { id: 'b' }),
  ],
  [
    'an object with defaults',
    release(
      NewJob.extend({ options: z.object({ retries: z.int().default(3) }).prefault({}) }),
      Job,
      { id: 'b' },
    ),
  ],
  [
    'a default inside a list',
    release(
      NewJob.extend({
        steps: z.array(z.object({ name: z.string(), weight: z.int().default(1) })).default([]),
      }),
      Job,
      { id: 'b' },
    ),
  ],
  [
    'a default in an object that may be omitted',
    release(NewJob.extend({ place: FloorPlace.optional() }), Job, { id: 'b' }),
  ],
  [
    'a default in an object that may be null',
    release(
      NewJob.extend({
        from: FloorPlace.nullable().optional(),
        to: FloorPlace.nullable().optional(),
      }),
      Job,
      { id: 'b' },
    ),
  ],
  [
    'a default in an object that is read-only',
    release(NewJob.extend({ fixed: FloorPlace.readonly().optional() }), Job, { id: 'b' }),
  ],
])('%s: the repetition returns the first response, and another request is 422', async (_, next) => {
  const database = await newDatabase()
  onTestFinished(database.remove)
  const shared = { ...database, remove: async () => {} }
  const headers = { 'idempotency-key': '"once"' }
  const before = await startService({}, { database: shared, resources: resourcesOf(first) })
  const made = await before.rest('POST', '/jobs', { headers, body })
  await before.stop()
  expect(made).toMatchObject({ status: 201, body: { id: 'a' } })

  const after = await startService({}, { database: shared, resources: resourcesOf(next) })
  onTestFinished(after.stop)
  const rest = restClient(after.origin, before.key)
  // Not by `rest`, because the first response may lack a field of the new document.
  const again = await keyedFetch(after.origin, before.key)('/v1/jobs', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  expect([again.status, await again.text()]).toEqual([201, made.text])
  const trpc = trpcClient<typeof first>(after.origin, before.key, (url, init) =>
    fetch(url, { ...init, headers: { ...init?.headers, ...headers } }),
  )
  expect(await trpc.createJob.mutate(body)).toEqual({ id: 'a' })
  for (const other of [{ title: 'x' }, { ...body, title: 'z' }]) {
    expect(await rest('POST', '/jobs', { headers, body: other })).toMatchObject({ status: 422 })
  }
  expect(await errorOf(trpc.createJob.mutate({ title: 'z' }))).toMatchObject({ status: 422 })
})
