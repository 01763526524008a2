/** What a stand-in of a product with middlewares imports: nothing that a browser or a frontend lacks. */
import path from 'node:path'
import { setupServer } from 'msw/node'
import { expect, onTestFinished, test } from 'vitest'
import { bundleStandIn } from '../../client/bundle.ts'
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { createStores } from '../../src/petstore/resources.ts'
import type { CallerOf } from '../../src/procedure/authentication.ts'
import { proceduresWith, router } from '../../src/procedure/procedure.ts'
import { procedure } from '../support/procedures.ts'
import { trpcClient } from '../support/service.ts'
import type { bySession } from './context.ts'
import { teamRouter } from './router.ts'
import { context, handlers } from './stand-in.ts'

/** Returns what the bundle of a file imports. */
const bundle = async (file: string) => {
  const input = path.join(import.meta.dirname, file)
  const { output } = await bundleStandIn(input, { write: false })
  const code = output.map((chunk) => ('code' in chunk ? chunk.code : '')).join('\n')
  return [...code.matchAll(/^import .*?"(.+?)"/gm)].map(([, name]) => name ?? '')
}

test('a stand-in imports neither node: nor the packages of createContext', async () => {
  expect(await bundle('router.ts')).toEqual(expect.arrayContaining(['@trpc/server']))
  expect(
    (await bundle('stand-in.ts')).filter((name) => !/^(@trpc\/server|msw|devalue)/.test(name)),
  ).toEqual([])
  // … so that this test would notice.
  expect(await bundle('context.ts')).toContain('jose')
})

/** For its type alone. */
declare const start: typeof import('../../src/process/start.ts').start
declare const config: Parameters<typeof start>[0]
declare const log: Parameters<typeof start>[1]

test('the types ask for what the procedures expect of ctx, and for their stores', () => {
  const shared = sharedInMemory([])
  const { url, createContext } = { url: 'https://team.example/trpc', createContext: () => context }
  const nested = router({ team: router({ inner: teamRouter }) })
  const signedIn = proceduresWith<object, { caller: CallerOf<typeof bySession> }>()
  const plain = router({ ping: procedure.query(() => 'pong') })
  const ofRole = signedIn.router({ role: signedIn.procedure.query(({ ctx }) => ctx.caller.role) })
  const product = { router: nested, document: '', createStores, createContext }
  // tsc checks these calls.
  const calls = () => [
    handlersOf(nested, shared, { url, createContext }),
    // @ts-expect-error without createContext
    handlersOf(nested, shared, { url }),
    // @ts-expect-error without a mailer
    handlersOf(nested, shared, { url, createContext: () => ({ ...context, mailer: undefined }) }),
    // @ts-expect-error without stores
    handlersOf(nested, { ...shared, stores: {} }, { url, createContext }),
    handlersOf(plain, shared, { url }),
    handlersOf(ofRole, shared, { url }),
    start(config, log, product),
    // @ts-expect-error without createContext
    start(config, log, { ...product, createContext: undefined }),
    // @ts-expect-error without a mailer
    start(config, log, { ...product, createContext: () => ({ language: 'en' }) }),
    // @ts-expect-error without stores
    start(config, log, { ...product, createStores: () => ({}) }),
  ]
  expect(calls).toBeTypeOf('function')
})

test('a middleware has the context of the stand-in', async () => {
  const server = setupServer(...handlers)
  server.listen()
  onTestFinished(() => server.close())
  const client = trpcClient<typeof teamRouter>('https://team.example', 'any')
  expect(await client.getMe.query({})).toEqual({ user: 'Ann', frontend: 'stand-in', key: null })
})
