/** Both surfaces run the middlewares of a procedure, after the check of the API key. */
import { TRPCError } from '@trpc/server'
import { beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import { idempotentWrite } from '../../src/procedure/idempotent-write.ts'
import { int64Input } from '../../src/procedure/int64.ts'
import { keyedProcedure, router } from '../../src/procedure/procedure.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { serviceForFile, trpcClient } from '../support/service.ts'

const ran: string[] = []
const example: Pet = { id: 42n, name: 'Rex', categoryId: 1n, status: 'available' }

/** The codes of errors that the procedure throws, by the id of the pet. */
const errors: Record<number, TRPCError['code']> = {
  1401: 'UNAUTHORIZED',
  1503: 'SERVICE_UNAVAILABLE',
}

const creation = (path: `/${string}`) =>
  keyedProcedure
    .use(({ next }) => next())
    .meta(
      described('POST', path, {
        creates: '/pets/{id}',
        example,
        exampleInput: { name: 'Rex', categoryId: 1 },
      }),
    )
    .input(NewPet)
    .output(Pet)
    .mutation(idempotentWrite(({ ctx, input }) => ctx.stores.pets.create(input, ctx.deadline)))

const served = router({
  createPet: creation('/pets'),
  createTwin: creation('/twins'),
  getPet: keyedProcedure
    .use(({ ctx, next }) => {
      ran.push('first')
      return next({ ctx: { seenBy: ctx.caller.keyId } })
    })
    .meta(described('GET', '/pets/{petId}', { notFound: 'There is none', example }))
    .input(z.object({ petId: int64Input({ description: 'The pet.' }) }))
    .use(({ input: { petId }, next }) => {
      ran.push('second')
      if (petId < 1n) throw new TRPCError({ code: 'NOT_FOUND', message: 'There is none' })
      return next()
    })
    .output(Pet)
    .query(async ({ ctx, input: { petId } }) => {
      ran.push('resolver')
      if (petId === 500n) throw new RangeError('Too far')
      if (petId === 503n) throw new DatabaseUnavailableError(new Error('Away'), true)
      const own = errors[Number(petId)]
      if (own)
        throw new TRPCError({ code: own, message: 'Not now', cause: new Error('The reason') })
      return { ...example, id: petId, categoryId: ctx.seenBy }
    }),
  getTwin: keyedProcedure
    .use(({ next }) => {
      ran.push('only')
      return next()
    })
    .meta(described('GET', '/twins/{petId}', { example }))
    .input(z.object({ petId: int64Input({ description: 'The pet.' }) }))
    .output(Pet)
    .query(async () => example),
})

const service = await serviceForFile({}, { resources: resourcesOf(served) })
beforeEach(() => void ran.splice(0))

const rest = async (petId: number) => {
  const { status, body } = await service.rest('GET', `/pets/${petId}`)
  return [status, (body as { name?: string }).name]
}
const trpc = async (petId: number) => {
  const { getPet } = trpcClient<typeof served>(service.origin, service.key)
  return await getPet.query({ petId }).then(
    ({ name }) => [200, name],
    (error) => [error.data?.httpStatus, undefined],
  )
}

test('a procedure with one middleware runs it', async () => {
  expect((await service.rest('GET', '/twins/7')).status).toBe(200)
  await trpcClient<typeof served>(service.origin, service.key).getTwin.query({ petId: 7 })
  expect(ran).toEqual(['only', 'only'])
})

test.each([
  ['REST', rest],
  ['tRPC', trpc],
])('%s', async (_, call) => {
  expect(await call(7)).toEqual([200, 'Rex'])
  expect(ran.splice(0)).toEqual(['first', 'second', 'resolver'])
  expect(await call(0)).toEqual([404, undefined])
  expect(ran).toEqual(['first', 'second'])
})

test('an unavailable database is 503 on REST, on tRPC and in a stream, and the log has the cause', async () => {
  service.logged.splice(0)
  expect(await rest(503)).toEqual([503, undefined])
  expect(await trpc(503)).toEqual([503, undefined])
  const input = encodeURIComponent(JSON.stringify({ 0: '[{"petId":1},503]' }))
  const stream = await service.fetch(`/trpc/getPet?batch=1&input=${input}`, {
    headers: { 'trpc-accept': 'application/jsonl' },
  })
  const text = await stream.text()
  expect(text).toContain('SERVICE_UNAVAILABLE')
  expect(text).not.toContain('INTERNAL_SERVER_ERROR')
  const causes = service.logged.map((line) => JSON.parse(line)).flatMap(({ err }) => err ?? [])
  const cause = { type: 'DatabaseUnavailableError', message: expect.stringContaining('Away') }
  expect(causes).toMatchObject([cause, cause, cause])
})

test('the log has the error that a procedure threw, on both surfaces', async () => {
  service.logged.splice(0)
  expect(await rest(500)).toEqual([500, undefined])
  expect(await trpc(500)).toEqual([500, undefined])
  const errors = service.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 50)
  expect(errors.map(({ err }) => [err.type, err.message])).toEqual([
    ['RangeError', 'Too far'],
    ['RangeError', 'Too far'],
  ])
})

test.each([
  [1401, 401, 'www-authenticate', 'Bearer'],
  [1503, 503, 'retry-after', '5'],
])(
  'an error that a procedure makes itself has the headers of its code: %i',
  async (petId, status, name, value) => {
    service.logged.splice(0)
    const rest = await service.rest('GET', `/pets/${petId}`)
    const input = encodeURIComponent(JSON.stringify(`[{"petId":1},${petId}]`))
    const trpc = await service.fetch(`/trpc/getPet?input=${input}`)
    expect(rest.body).toMatchObject({ code: errors[petId], message: 'Not now' })
    for (const answer of [rest, trpc]) {
      expect([answer.status, answer.headers.get(name)]).toEqual([status, value])
    }
    const causes = service.logged.map((line) => JSON.parse(line)).flatMap(({ err }) => err ?? [])
    const cause = { message: 'The reason' }
    expect(causes).toMatchObject(status === 503 ? [cause, cause] : [])
  },
)

test('a creation behind a middleware happens once, also with its defaults written out', async () => {
  const create = async (body: object, path = '/pets') =>
    await service.rest('POST', path, { body, headers: { 'idempotency-key': '"behind"' } })
  const pet = { name: 'Rex', categoryId: 1 }
  const first = await create(pet)
  expect(first.status).toBe(201)
  expect(await create({ ...pet, status: 'available' })).toMatchObject({
    status: 201,
    text: first.text,
  })
  expect((await create({ ...pet, status: 'sold' })).status).toBe(422)
  expect((await create(pet, '/twins')).status).toBe(422)
})
