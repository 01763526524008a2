/** Each row of the table "What of tRPC is here" in CONTRIBUTING.md says what happens. */
import { readFileSync } from 'node:fs'
import { createTRPCClient, httpLink } from '@trpc/client'
import { type AnyTRPCProcedure, type AnyTRPCRouter, initTRPC, lazy } from '@trpc/server'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { ConflictError } from '../../db/errors.ts'
import { operationsOf } from '../../src/procedure/definitions.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { routesOf } from '../../src/surface/rest/routes.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile, trpcClient } from '../support/service.ts'

let attempts = 0
let calls = 0
const served = router({
  ping: procedure.query(() => 'pong'),
  text: procedure.input(z.any()).mutation(({ ctx }) => write(ctx, async () => 'pong')),
  likes: procedure.mutation(() => 'what it likes'),
  counts: procedure.query(async function* () {
    yield 1
  }),
  waits: procedure.input(z.string().refine(async () => true)).query(() => 'pong'),
  fails: procedure.query(() => {
    throw new Error('The cause')
  }),
  attempted: procedure
    .use(({ next }) => {
      calls++
      return next()
    })
    .mutation(({ ctx }) =>
      write(ctx, async () => {
        if (++attempts === 1) throw new ConflictError('It met another one', true)
        return [calls, attempts]
      }),
    ),
})
const service = await serviceForFile({}, { resources: resourcesOf(served) })
const client = trpcClient<typeof served>(service.origin, service.key)

const reading = procedure.meta(described('GET', '/ping', { example: 'pong' })).output(z.string())

/** What a start says of a router. */
function said(made: AnyTRPCRouter): string {
  try {
    routesOf(operationsOf(made), 'https://x/v1')
  } catch (error) {
    return String(error)
  }
  return 'It starts'
}
const saidOf = (one: unknown) => said(router({ one: one as AnyTRPCProcedure }))

/** What the log has after a call that fails. */
async function logged(call: Promise<unknown>): Promise<string> {
  service.logged.length = 0
  await expect(call).rejects.toThrow('Internal server error')
  return service.logged.join()
}

/** What happens, by the beginning of the row. */
const trials: Record<string, () => string | Promise<string>> = {
  'A mutation that returns what it likes': () => logged(client.likes.mutate()),
  Subscriptions: () => saidOf(procedure.subscription(async function* () {})),
  'An output in parts': () => logged(client.counts.query()),
  '`FormData`': async () => {
    const body = new FormData()
    body.append('file', new Blob(['bytes']))
    const headers = { 'content-type': undefined } // that of FormData
    return (await service.fetch('/trpc/text', { method: 'POST', body, headers })).text()
  },
  '`methodOverride: ': async () => {
    const headers = { authorization: `Bearer ${service.key}` }
    const url = `${service.origin}/trpc`
    const link = httpLink({ url, transformer, headers, methodOverride: 'POST' } as never)
    const { ping } = createTRPCClient<typeof served>({ links: [link] })
    return ping.query().catch(String)
  },
  '`lazy(': () => said(router({ inner: lazy(async () => served) })),
  'An `initTRPC`': () => {
    const other = initTRPC.create()
    const foreign = other.router({ ping: other.procedure.query(() => 'pong') })
    expect(said(router({ deep: { inner: foreign } }))).toContain(
      'procedure deep.inner.ping is made by',
    )
    return said(foreign)
  },
  '`.errors(': () => saidOf(procedure.errors(() => undefined).query(() => 1)),
  '`experimental_caller`': () =>
    saidOf(procedure.experimental_caller(async () => 1).query(() => 1)),
  'Validators other than zod': () => saidOf(procedure.input(String).query(() => 1)),
  '`z.strictObject`': () => saidOf(reading.input(z.strictObject({})).query(() => 'pong')),
  'Checks that wait': () => logged(client.waits.query('text')),
  'The meta `openapi`': () =>
    saidOf(procedure.meta({ openapi: { method: 'GET', path: '/' } }).query(() => 1)),
  '`responseMeta` and `onError`': async () => {
    expect(await logged(client.fails.query())).toContain('"message":"The cause"')
    return 'nothing calls them'
  },
  '`createCaller`': async () => {
    const caller = served.createCaller({} as never)
    expect(await caller.ping()).toBe('pong') // without an API key
    await expect(caller.text('any')).rejects.toThrow('as it is undefined')
    return 'it runs without an API key'
  },
  'A middleware around each attempt': async () => {
    expect(await client.attempted.mutate()).toEqual([1, 2])
    return 'it wraps the call'
  },
}

const table = readFileSync('CONTRIBUTING.md', 'utf8')
  .split('## What of tRPC is here')[1]
  ?.split('\n## ')[0]
const rows = [...`${table}`.matchAll(/^\| (.+?) \| (.+?) \| .+ \|$/gm)].slice(1)

test('each row has a trial, and each trial a row', () => {
  const names = Object.keys(trials)
  expect(rows.map(([, what = '']) => names.find((name) => what.startsWith(name)))).toEqual(names)
})

test.each(Object.entries(trials))('%s', async (name, trial) => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  onTestFinished(() => warn.mockRestore())
  const [, , here = ''] = rows.find(([, what]) => what?.startsWith(name)) ?? []
  const quoted = [...here.matchAll(/"(.+?)"/g)].map(([, text]) => `${text}`)
  const seen = await trial()
  for (const text of quoted) expect(seen).toContain(text)
  if (quoted.length === 0) expect(here).toContain(seen)
})
