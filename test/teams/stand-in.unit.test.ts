/** What a stand-in of a product with middlewares imports: nothing that a browser or a frontend lacks. */
import path from 'node:path'
import { setupServer } from 'msw/node'
import { expect, onTestFinished, test } from 'vitest'
import { bundleStandIn } from '../../client/bundle.ts'
import { trpcClient } from '../support/service.ts'
import type { teamRouter } from './router.ts'
import { handlers } from './stand-in.ts'

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

test('a middleware has the context of the stand-in', async () => {
  const server = setupServer(...handlers)
  server.listen()
  onTestFinished(() => server.close())
  const client = trpcClient<typeof teamRouter>('https://team.example', 'any')
  expect(await client.getMe.query({})).toEqual({ user: 'Ann', frontend: 'stand-in', key: null })
})
