/** Middlewares, as tRPC's documentation shows them, and what a mutation keeps whatever they do: on every face alike. */
import { EventEmitter, once } from 'node:events'
import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { TRPCError } from '@trpc/server'
import { afterEach, beforeEach, describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Problem } from '../../src/errors/problem.ts'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import type { Call } from '../../src/procedure/call.ts'
import { paged, pagingInputs } from '../../src/procedure/paging.ts'
import { proceduresWith, router } from '../../src/procedure/procedure.ts'
import { create, write, writeIdempotent } from '../../src/procedure/write.ts'
import { type Answer, facesOf, type Sent } from '../support/faces.ts'
import { addPet, petOf } from '../support/pets.ts'
import { described, resourcesOf, type Stores } from '../support/procedures.ts'
import { serviceForFile } from '../support/service.ts'

setFlagsFromString('--expose-gc')
const gc: () => void = runInNewContext('gc')

const { procedure, middleware } = proceduresWith<Stores>()

/** What the middlewares and the resolver of the last call have seen. */
const seen: unknown[] = []
const see = (...what: unknown[]) => void seen.push(...what)

const Toy = z.object({ label: z.string() }).meta({ id: 'Toy' })
const Input = z.object({ label: z.string({ error: 'must be a string' }) }).meta({ id: 'NewToy' })
const ball = { label: 'Ball' }
const rex = { name: 'Rex', categoryId: 1 }
const example = petOf(42n, { categoryId: 1n })

let paths = 0
/** A query without its input. */
const asking = procedure
const reading = () => described('GET', `/toys/${paths++}`, { example: ball })
const writing = (takesKey = true) =>
  described('PUT', `/pets/${paths++}`, { takesKey, example, exampleInput: rex })

const guarded = asking.use(({ ctx, next }) => {
  if (!ctx.caller.readOnly) throw new TRPCError({ code: 'FORBIDDEN', message: 'Readers alone' })
  return next()
})
const timed = middleware(async ({ path, type, next }) => {
  const result = await next()
  see(path, type, result.ok)
  return result
})
const named = middleware(({ next }) => next({ ctx: { user: { name: 'Ann' } } }))
const wrong = (code: Problem['code'], status: number, message: string): Answer => [
  code,
  status,
  message,
]
const internal = wrong('INTERNAL_SERVER_ERROR', 500, 'Internal server error')
const invalid = wrong('BAD_REQUEST', 400, 'label must be a string')

interface Scenario {
  served: unknown
  input?: object
  answer: Answer
  seen?: unknown[]
  /** The number of pets that the call adds. */
  adds?: number
  /** What the line of the log has. */
  log?: string
  /** What its stack has. */
  stack?: string
}

/** A mutation that adds a pet behind this middleware. */
const adding = (using: Parameters<typeof procedure.use>[0]) =>
  procedure
    .use(using as never)
    .meta(writing())
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) => {
      see('resolver')
      return writeIdempotent(ctx as Call<Stores>, (call) => addPet(call.stores.pets, call, input))
    })
const added: Answer = { output: expect.objectContaining({ name: 'Rex' }) }
const replaced = (field: keyof Call, value: unknown): Scenario => ({
  served: adding(({ ctx, next }) => next({ ctx: { ...ctx, [field]: value } })),
  input: rex,
  answer: internal,
  seen: [],
  log: `replaces ctx.${field}, which must stay as it is`,
})

const scenarios: Record<string, Scenario> = {
  'https://trpc.io/docs/server/middlewares#authorization': {
    served: guarded
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => input),
    answer: wrong('FORBIDDEN', 403, 'Readers alone'), // before the input, which is missing
  },
  'an input is checked in its place': {
    served: procedure
      .use(async ({ next }) => {
        const result = await next()
        if (!result.ok) see(result.error.message, result.error.cause?.constructor.name)
        return result
      })
      .meta(reading())
      .input(Input)
      .use(({ next }) => {
        see('never')
        return next()
      })
      .output(Toy)
      .query(({ input }) => input),
    input: {},
    answer: invalid,
    seen: ['label must be a string', 'ZodError'],
  },
  'https://trpc.io/docs/server/middlewares#logging': {
    served: procedure
      .use(timed)
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => input),
    input: ball,
    answer: { output: ball },
    seen: ['NAME', 'query', true],
  },
  'https://trpc.io/docs/server/middlewares#context-extension': {
    served: procedure
      .use(({ ctx, next }) => next({ ctx: { ...ctx, user: { name: 'Ann' } } }))
      .meta(reading())
      .input(Input)
      .use(({ ctx, input, next }) =>
        next({ ctx: { greeting: `${input.label}, ${ctx.user.name}` } }),
      )
      .output(Toy)
      .query(({ ctx }) => ({ label: ctx.greeting })),
    input: ball,
    answer: { output: { label: 'Ball, Ann' } },
  },
  'https://trpc.io/docs/server/middlewares#extending-middlewares': {
    served: procedure
      .use(named.unstable_pipe(({ ctx, next }) => next({ ctx: { length: ctx.user.name.length } })))
      .concat(procedure.use(timed))
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ ctx }) => ({ label: `${ctx.user.name} ${ctx.length}` })),
    input: ball,
    answer: { output: { label: 'Ann 3' } },
    seen: ['NAME', 'query', true],
  },
  'the order of middlewares, inputs and the resolver': {
    served: procedure
      .use(async ({ next, input }) => {
        see('first', input)
        const result = await next()
        see('first again')
        return result
      })
      .meta(reading())
      .input(Input)
      .use(async ({ next, input, getRawInput }) => {
        see('second', input, await getRawInput())
        return next()
      })
      .output(Toy)
      .query(({ input }) => {
        see('resolver')
        return input
      }),
    input: { ...ball, size: '7' },
    answer: { output: ball },
    // REST reads the fields that the schema names.
    seen: [...['first', undefined, 'second', ball], expect.objectContaining(ball)].concat([
      'resolver',
      'first again',
    ]),
  },
  'a middleware replaces the input, and what an input is read from': {
    served: procedure
      .use(({ next }) => next({ getRawInput: async () => ({ label: 'Kite' }) }))
      .meta(reading())
      .input(Input)
      .use(({ next, input }) => next({ input: { label: `${input.label}s` } }))
      .output(Toy)
      .query(({ input, ctx }) => {
        see(ctx.progress.input)
        return input
      }),
    input: ball,
    answer: { output: { label: 'Kites' } },
    seen: [{ label: 'Kite' }],
  },
  'https://trpc.io/docs/server/metadata': {
    served: procedure
      .use(({ meta, path, next }) => {
        see(meta?.rest?.path.startsWith('/toys/'), path)
        return next()
      })
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input, path, batchIndex }) => {
        see(path, batchIndex)
        return input
      }),
    input: ball,
    answer: { output: ball },
    seen: [true, 'NAME', 'NAME', 0],
  },
  'https://trpc.io/docs/server/error-handling: the error of the result is that of the answer': {
    served: procedure
      .use(async ({ next }) => {
        const result = await next()
        if (!result.ok)
          see(result.error instanceof TRPCError, result.error.message, result.error.cause)
        return result
      })
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(() => {
        throw new RangeError('Too far')
      }),
    input: ball,
    answer: internal,
    seen: [true, 'Internal server error', new RangeError('Too far')],
    log: 'Too far',
  },
  'a middleware throws another error than the resolver': {
    served: procedure
      .use(async ({ next }) => {
        const result = await next()
        if (!result.ok) throw new TRPCError({ code: 'CONFLICT', message: 'Not now' })
        return result
      })
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(() => {
        throw new RangeError('Too far')
      }),
    input: ball,
    answer: wrong('CONFLICT', 409, 'Not now'),
  },
  'a middleware calls next again after an error of a query': {
    served: procedure
      .use(async ({ next }) => {
        const result = await next()
        return result.ok ? result : next()
      })
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => {
        see('resolver')
        if (seen.length === 1) throw new Error('Once')
        return input
      }),
    input: ball,
    answer: { output: ball },
    seen: ['resolver', 'resolver'],
  },
  'a middleware sees the checked items of a list, and keeps some': {
    served: procedure
      .use(async ({ next }) => {
        const result = await next()
        if (!result.ok) return result
        see(result.data)
        return { ...result, data: (result.data as object[]).slice(1) }
      })
      .meta(described('GET', '/boxes', { isPaged: true, example: [] }))
      .input(z.object(pagingInputs('boxes')))
      .output(paged(z.array(Toy).meta({ id: 'Boxes' })))
      .query(async () => ({ items: [{ ...ball, secret: 1 }, ball], next: 7n })),
    input: {},
    answer: { output: [ball] },
    seen: [[ball, ball]],
  },
  'an output of a query that a middleware has made is checked': {
    served: procedure
      .use(async ({ next }) => ({ ...(await next()), data: { label: 7 } }))
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => input),
    input: ball,
    answer: internal,
    log: 'The output of NAME does not fit its schema',
  },
  'an output that a middleware has made of nothing is checked': {
    served: procedure
      .use(async () => ({ ok: true, data: undefined }) as never)
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => input),
    input: ball,
    answer: internal,
    log: 'The output of NAME does not fit its schema',
  },
  'a forgotten return in a query': {
    served: procedure
      .use((({ next }: { next(): unknown }) => void next()) as never)
      .meta(reading())
      .input(Input)
      .output(Toy)
      .query(({ input }) => input),
    input: ball,
    answer: internal,
    log: 'A middleware of NAME must return the result of next()',
  },
  'a mutation has one effect, though a middleware calls next twice': {
    served: adding(async ({ next }) => {
      await next()
      return next()
    }),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'A middleware of NAME, a mutation, calls next() twice',
  },
  'a mutation keeps its output': {
    served: adding(async ({ next }) => ({ ...(await next()), data: { name: 7 } })),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'replaces the result of next()',
  },
  'a mutation keeps its output, though a middleware writes into its result': {
    served: adding(async ({ next }) => {
      const result = await next()
      Object.assign(result, { data: { name: 7 } })
      return result
    }),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'replaces the result of next()',
  },
  'a mutation whose middleware fails after the effect': {
    served: adding(async ({ next }) => {
      await next()
      throw new Error('The audit is away')
    }),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'The audit is away',
  },
  'a mutation whose middleware refuses after the effect': {
    served: adding(async function refuseLate({ next }) {
      await next()
      throw new TRPCError({ code: 'FORBIDDEN', message: 'Too late' })
    }),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'Too late',
    stack: 'refuseLate',
  },
  'a mutation whose middleware forgets the return, and next, too': {
    served: adding((() => {}) as never),
    input: rex,
    answer: internal,
    log: 'A middleware of NAME must return the result of next()',
  },
  'a mutation whose middleware forgets the return alone': {
    served: adding((({ next }: { next(): unknown }) => void next()) as never),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
    log: 'A middleware of NAME must return the result of next()',
  },
  'a mutation whose middleware returns a result of its own': {
    served: adding((async () => ({ ok: true, data: example })) as never),
    input: rex,
    answer: internal,
    log: 'A middleware of NAME, a mutation, returns a result without next()',
  },
  'a mutation whose middleware calls next when it has ended': {
    served: adding(({ next }) => {
      setTimeout(next)
      throw new TRPCError({ code: 'FORBIDDEN', message: 'Too late' })
    }),
    input: rex,
    answer: wrong('FORBIDDEN', 403, 'Too late'),
  },
  'a mutation whose middleware refuses it': {
    served: adding(async ({ next }) => {
      const result = await next({ input: 7 })
      if (!result.ok) throw new TRPCError({ code: 'FORBIDDEN', message: 'No' })
      return result
    }),
    input: {},
    answer: wrong('FORBIDDEN', 403, 'No'),
  },
  'a context may hand on the fields of the service as they are': {
    served: adding(({ ctx, next }) => next({ ctx: { ...ctx, user: 'Ann' } })),
    input: rex,
    answer: added,
    seen: ['resolver'],
    adds: 1,
  },
  'other stores': replaced('stores', { pets: {} }),
  'another deadline': replaced('deadline', {}),
  'another caller': replaced('caller', undefined),
  'another operation': replaced('operation', {}),
  'other parts of the service': replaced('shared', {}),
  'another input to compare': replaced('progress', { input: ball, written: undefined }),
}

const names = Object.keys(scenarios)
const nameOf = (name: string) => `call${names.indexOf(name)}`
const untyped = Object.entries(scenarios).map(([name, { served }]) => [nameOf(name), served])

/** Resolves once the deadline has passed, and then what hung ends. */
let hanging: AbortSignal[] = []
const hangs = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    if (!signal) throw new Error('There is no signal')
    hanging.push(signal)
    signal.addEventListener('abort', () => reject(signal.reason))
  })

/** Emits `entered` when a call waits, and goes on by `leave`. */
const waiting = new EventEmitter()
const wait = async () => {
  const left = once(waiting, 'leave')
  setTimeout(() => waiting.emit('entered'))
  await left
}
const seeRaw = (raw: object) => {
  see(new WeakRef(raw))
  return raw
}
const seeing = procedure
  .use(({ next }) => next())
  .input(z.preprocess((raw) => seeRaw(raw as object), NewPet))

const served = router({
  ...(Object.fromEntries(untyped) as object),
  listPets: petProcedures.listPets,
  index: procedure
    .use(({ batchIndex, next }) => next({ ctx: { index: batchIndex } }))
    .meta(reading())
    .input(Input)
    .output(Toy)
    .query(({ ctx, batchIndex }) => ({ label: `${ctx.index} ${batchIndex}` })),
  keyed: procedure
    .use(({ next }) => next({ ctx: { user: { name: 'Ann' } } }))
    .meta(
      described('POST', '/pets', {
        creates: '/pets/{id}',
        takesKey: true,
        example,
        exampleInput: rex,
      }),
    )
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) => {
      see(ctx.user.name)
      return create(ctx, ctx.stores.pets.newPet, input)
    }),
  // What a middleware before the input makes of `ctx` does not have the input.
  keyedByService: procedure
    .use(({ ctx, next }) => {
      const add = (pet: NewPet) => create(ctx, ctx.stores.pets.newPet, pet)
      return next({ ctx: { service: { add } } })
    })
    .meta(writing())
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) => ctx.service.add(input)),
  getPet: petProcedures.getPet,
  waitsInMiddleware: seeing
    .use(async ({ next }) => {
      await wait()
      return next()
    })
    .query(({ input }) => input),
  waitsInResolver: seeing.mutation(async ({ ctx, input }) => {
    await wait()
    return write(ctx, (call) => addPet(call.stores.pets, call, input))
  }),
  works: procedure
    .use(({ ctx, next }) => next({ ctx: { ...ctx, user: { name: 'Ann' } } }))
    .meta(writing(false))
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) =>
      write({ ...ctx }, (call) => {
        expectTypeOf(call.user.name).toBeString()
        see(call.signal instanceof AbortSignal, call.signal === ctx.deadline.signal)
        return addPet(call.stores.pets, call, { ...input, name: call.user.name })
      }),
    ),
  hangsBefore: adding(async ({ signal, next }) => {
    await hangs(signal).catch(() => {})
    return next()
  }),
  hangsAfter: adding(async ({ signal, next }) => {
    await next()
    return await hangs(signal)
  }),
  hangsInResolver: procedure
    .meta(reading())
    .input(Input)
    .output(Toy)
    .query(({ signal }) => hangs(signal)),
  deafAfter: adding(async ({ next }) => {
    await next()
    return await new Promise<never>(() => {})
  }),
  deaf: procedure
    .use(() => new Promise<never>(() => {}))
    .meta(reading())
    .input(Input)
    .output(Toy)
    .query(({ input }) => input),
})

const service = await serviceForFile({ DATABASE_TIMEOUT: '1s' }, { resources: resourcesOf(served) })
const faces = facesOf(served, service)
beforeEach(() => {
  seen.length = 0
  service.logged.length = 0
})
afterEach(() => {
  hanging = []
})

describe.each(Object.entries(faces))('%s', (faceName, face) => {
  const count = async () =>
    ((await face('listPets', { limit: 100 })) as { output: unknown[] }).output.length

  test.each(Object.entries(scenarios))('%s', async (name, scenario) => {
    const { input, answer, adds = 0, log } = scenario
    const before = await count()
    const inName = (text: unknown) => (text === 'NAME' ? nameOf(name) : text)
    expect(await face(nameOf(name), input)).toEqual(answer)
    expect(seen).toEqual((scenario.seen ?? []).map(inName))
    expect((await count()) - before).toBe(adds)
    if (faceName === 'the stand-in') return
    const lines = service.logged.map((line) => JSON.parse(line)).filter(({ err }) => err)
    expect(
      lines.map(({ err, operation }) => [err.message.replaceAll(nameOf(name), 'NAME'), operation]),
    ).toEqual(log ? [[expect.stringContaining(log), nameOf(name)]] : [])
    if (scenario.stack !== undefined) expect(lines[0].err.stack).toContain(scenario.stack)
  })

  test('no middleware runs for a call without an API key', async () => {
    const name = nameOf('https://trpc.io/docs/server/middlewares#logging')
    const answer = await face(name, ball, { headers: { authorization: undefined } })
    expect([(answer as unknown[])[1], seen]).toEqual([401, []])
  })

  test('the work of write has what middlewares have added, and the signal', async () => {
    expect(await face('works', rex)).toEqual({ output: expect.objectContaining({ name: 'Ann' }) })
    expect(seen).toEqual([true, true])
  })
})

test('a middleware that maps the items of a page keeps the link to the next one', async () => {
  const name = nameOf('a middleware sees the checked items of a list, and keeps some')
  expect(names).toContain('a middleware sees the checked items of a list, and keeps some')
  const answer = await service.fetch('/v1/boxes?limit=2')
  expect([name, answer.headers.get('link')]).toEqual([name, expect.stringContaining('cursor=7')])
})

test('batchIndex is the index of the call in its batch', async () => {
  const one = JSON.stringify('[{"label":1},"Ball"]')
  const input = encodeURIComponent(`{"0":${one},"1":${one}}`)
  for (const headers of [{}, { 'trpc-accept': 'application/jsonl' }]) {
    const answer = await service.fetch(`/trpc/index,index?batch=1&input=${input}`, { headers })
    const body = await answer.text()
    expect([body.includes('0 0'), body.includes('1 1')]).toEqual([true, true])
  }
})

test.each(
  (['rest', 'trpc', 'the stand-in'] as const).flatMap((face) =>
    ['keyed', 'keyedByService'].map((procedure) => [face, procedure] as const),
  ),
)('a creation with a key, and its repetition, behind a middleware: %s, %s', async (name, keyed) => {
  const sent: Sent = { headers: { 'idempotency-key': `"${name} ${keyed}"` } }
  const first = await faces[name](keyed, rex, sent)
  expect(first).toEqual(added)
  expect(await faces[name](keyed, rex, sent)).toEqual(first)
  expect((await faces[name](keyed, { ...rex, name: 'Ada' }, sent))[1 as never]).toBe(422)
})

test.each(['hangsBefore', 'hangsAfter', 'hangsInResolver', 'deaf', 'deafAfter'])(
  'at the deadline the call is answered: %s',
  async (name) => {
    const before = await service.sql('select id from pets')
    const input = ['hangsInResolver', 'deaf'].includes(name) ? ball : rex
    const answer = await faces.rest(name, input)
    const late = wrong(
      'SERVICE_UNAVAILABLE',
      503,
      'The service could not answer in time; try again later',
    )
    const isAfter = name.endsWith('After')
    expect(answer).toEqual(isAfter ? added : late)
    expect(hanging.map(({ aborted }) => aborted)).toEqual(name.startsWith('deaf') ? [] : [true])
    await new Promise((resolve) => setTimeout(resolve, 50)) // a middleware that goes on then has no effect
    const after = await service.sql('select id from pets')
    expect(after.length - before.length).toBe(isAfter ? 1 : 0)
  },
)

test.each(['waitsInMiddleware', 'waitsInResolver'])(
  'a call keeps what its schema returns, and not what was read: %s',
  async (name) => {
    const entered = once(waiting, 'entered')
    const answer = faces.trpc(name, { ...rex, large: [ball] })
    await entered
    gc()
    const [raw] = seen as [WeakRef<object>]
    const isKept = raw.deref() !== undefined
    waiting.emit('leave')
    expect([isKept, await answer]).toEqual([false, added])
  },
)

test('a procedure without middlewares runs no function of the chain', async () => {
  const inspector = new Session()
  inspector.connect()
  onTestFinished(() => inspector.disconnect())
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true })
  /** Returns the names of the functions of the chain that have run since the last time. */
  const functions = async () => {
    const { result } = await inspector.post('Profiler.takePreciseCoverage')
    const chain = result.filter(
      ({ url }) =>
        url.includes('src/procedure/chain.ts') || url.includes('src/procedure/middleware.ts'),
    )
    const ran = chain.flatMap(({ functions }) => functions)
    return ran.filter(({ ranges: [range] }) => range?.count).map(({ functionName }) => functionName)
  }
  await functions()
  expect(await faces.rest('listPets')).toMatchObject({ output: expect.any(Array) })
  expect(await functions()).toEqual([])
  // … so that this test would notice.
  expect(await faces.rest(nameOf('https://trpc.io/docs/server/metadata'), ball)).toEqual({
    output: ball,
  })
  expect(await functions()).toEqual(expect.arrayContaining(['run']))
})
