/** Procedures that tRPC alone has: any input, any output that tRPC can encode, and no place on REST. */
import { createTRPCClient, isTRPCClientError, type TRPCClient } from '@trpc/client'
import { setupServer } from 'msw/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write, writeIdempotent } from '../../src/procedure/write.ts'
import { petstoreLinks } from '../support/client.ts'
import { addPet } from '../support/pets.ts'
import { procedure, resourcesOf, type Stores } from '../support/procedures.ts'
import { serviceForFile } from '../support/service.ts'

const rex = { name: 'Rex', categoryId: 1n, status: 'sold' } as const
const noEncoding = () => () => 'a function'
const add = async <Output>(
  call: { stores: Stores; deadline: Parameters<Stores['pets']['get']>[0]['deadline'] },
  output: Output,
) => {
  await addPet(call.stores.pets, call, rex)
  return output
}
let added = 0
const internal = router({
  started: procedure.query(() => new Map([['at', new Date(0)]])),
  echo: procedure.input(z.any()).query(({ input }) => input),
  text: procedure
    .input(z.string().optional())
    .output(z.set(z.string()))
    .query(({ input = '' }) => new Set(input)),
  nothing: procedure.input(z.void()).mutation(({ ctx }) => write(ctx, async () => {})),
  strange: procedure.query(noEncoding),
  addOnce: procedure
    .input(z.object({ like: z.any() }))
    .mutation(({ ctx }) => writeIdempotent(ctx, (call) => add(call, { count: ++added }))),
  addStrange: procedure.mutation(({ ctx }) => write(ctx, (call) => add(call, noEncoding()))),
  addStrangeOnce: procedure.mutation(({ ctx }) =>
    writeIdempotent(ctx, (call) => add(call, [{ of: noEncoding() }])),
  ),
  addStrangeAny: procedure
    .output(z.any())
    .mutation(({ ctx }) => write(ctx, (call) => add(call, noEncoding()))),
})
const served = router({ listPets: petProcedures.listPets, internal })
const service = await serviceForFile({}, { resources: resourcesOf(served) })

type Client = TRPCClient<typeof served>
const clientOf = (url: string): Client =>
  createTRPCClient({ links: petstoreLinks({ url, apiKey: service.key }) as never })

const url = 'https://pets.example/trpc'
const standIn = setupServer(...handlersOf(served, sharedInMemory([]), { url }))
beforeAll(() => standIn.listen({ onUnhandledFrame: 'bypass' }))
afterAll(() => standIn.close())

/** The result of a call, or the status of its error. */
const outcome = (call: Promise<unknown>) =>
  call.catch((error) =>
    isTRPCClientError(error) ? (error.data as { httpStatus: number }).httpStatus : error,
  )

describe.each([
  ['the service', clientOf(`${service.origin}/trpc`)],
  ['the stand-in', clientOf(url)],
])('%s', (_, client) => {
  const { started, echo, text, nothing, strange } = client.internal
  const adding = client.internal

  test('takes and returns every value that tRPC encodes, also without schemas', async () => {
    const values = [new Map([[1n, new Set([undefined])]]), -0, [NaN, /a/g], undefined, 'text']
    const calls = [started.query(), text.query(), text.query('aba'), nothing.mutate()]
    expect(await Promise.all([...calls, ...values.map((value) => echo.query(value))])).toEqual([
      ...[new Map([['at', new Date(0)]]), new Set(), new Set('ab'), undefined],
      ...values,
    ])
  })

  test('an input is ignored where there is none, and rejected by its schema', async () => {
    expect(await started.query({ any: 1 } as never)).toBeInstanceOf(Map)
    expect(await outcome(text.query(7 as never))).toBe(400)
    await expect(text.query(7 as never)).rejects.toThrow(
      /^Invalid input: expected string, received number$/,
    )
    expect(await outcome(nothing.mutate({} as never))).toBe(400)
  })

  test('an output without an encoding is 500, has no effect, and fails no other call of its batch', async () => {
    const before = (await client.listPets.query()).length
    const context = { idempotencyKey: 'strange' }
    expect(await Promise.all([outcome(strange.query()), echo.query(7)])).toEqual([500, 7])
    for (const call of [
      () => adding.addStrange.mutate(),
      () => adding.addStrangeOnce.mutate(),
      () => adding.addStrangeOnce.mutate(undefined, { context }),
      () => adding.addStrangeAny.mutate(),
    ])
      expect(await outcome(call())).toBe(500)
    expect(await client.listPets.query()).toHaveLength(before)
  })

  test('an Idempotency-Key tells apart what the encoding tells apart', async () => {
    const likes = [
      new Map(),
      new Set(),
      {},
      undefined,
      null,
      7,
      7n,
      '7',
      NaN,
      new Date(0),
      '1970-01-01T00:00:00.000Z',
    ]
    for (const [at, like] of likes.entries()) {
      const context = { idempotencyKey: `like ${at}` }
      const made = await adding.addOnce.mutate({ like }, { context })
      for (const [index, other] of likes.entries()) {
        const again = outcome(adding.addOnce.mutate({ like: other }, { context }))
        expect(await again, String(other)).toEqual(index === at ? made : 422)
      }
    }
  })
})

test('the log names them, with what is wrong, and REST and its document lack them', async () => {
  service.logged.length = 0
  const answer = await service.fetch(
    `/trpc/internal.strange,internal.echo?batch=1&input=${encodeURIComponent('{"1":"[7]"}')}`,
  )
  expect(answer.status).toBe(207)
  const lines = service.logged.map((line) => JSON.parse(line))
  expect(lines.map(({ operation, status }) => [operation, status])).toEqual([
    ['internal.strange', undefined],
    ['internal.strange', 500],
    ['internal.echo', 200],
  ])
  expect(lines[0].err.message).toContain('The output of internal.strange has no encoding in tRPC')
  const { body } = await service.rest('GET', '/openapi.json')
  expect(Object.keys((body as { paths: object }).paths)).toEqual(['/pets'])
})
