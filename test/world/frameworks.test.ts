/** The packed client in frameworks and behind a gateway, with the code of client/README.md. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished } from 'vitest'
import type { Project } from '../support/client-package.ts'
import { freePort } from '../support/mysql.ts'
import { startService } from '../support/service.ts'
import { npmTrial, sample, serve, shell } from './trial.ts'

const client = inject('clientPackage')

/** An id beyond those that a number can have. */
const EXACT = '9007199254740993'

/** Starts a service with one animal, whose id has these digits. */
async function serviceWithPet(settings = {}) {
  const service = await startService(settings)
  onTestFinished(service.stop)
  const pet = [BigInt(EXACT), 'Far', 1n, 'available']
  await service.sql('insert into pets (id, name, category_id, status) values (?, ?, ?, ?)', pet)
  const variables = { PETSTORE_URL: `${service.origin}/trpc`, PETSTORE_KEY: service.key }
  return { service, variables }
}
/** Writes the files of a project, in folders that may be missing. */
function writeAll(project: Project, files: Record<string, string>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(project.folder, file)), { recursive: true })
    project.write(file, text)
  }
}

const textOf = async (url: string, init?: RequestInit) => {
  const response = await fetch(url, init)
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return text
}

const NEXT = ['next', 'react', 'react-dom', 'typescript@5', '@types/react', '@types/node']
npmTrial('Next', [...NEXT, client], async (project) => {
  const { service, variables } = await serviceWithPet()
  writeAll(project, {
    'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>',
    // A component of the server hands a bigint to one of the browser.
    'app/page.jsx': `import { petstore } from '../petstore'
      import { Animal } from './animal.jsx'
      export const dynamic = 'force-dynamic'
      export default async function Page() {
        const [pet] = await petstore.listPets.query()
        return <Animal pet={pet} />
      }`,
    'app/animal.jsx': `'use client'
      import { queryKeyHashFn } from '@petstore-catalogue/petstore/client'
      export const Animal = ({ pet: { id, name } }) => <p title={queryKeyHashFn([id])}>{name}</p>`,
    // Each request adds an animal, and counts them.
    'app/cached/route.js': `import { createPetstoreClient } from '@petstore-catalogue/petstore/client'
      import { cachedQueries } from '../../cached'
      export const dynamic = 'force-dynamic'
      export async function GET() {
        const { PETSTORE_URL: url, PETSTORE_KEY: apiKey } = process.env
        const petstore = createPetstoreClient({ url, apiKey, fetch: cachedQueries })
        await petstore.createPet.mutate({ name: 'Rex', categoryId: 1 })
        return Response.json((await petstore.listPets.query()).length)
      }`,
    'petstore.ts': sample("from 'next/headers'"),
    'cached.ts': sample('// cached.ts'),
  })
  await shell(project, 'NEXT_TELEMETRY_DISABLED=1 node_modules/.bin/next build')
  const port = await freePort()
  const start = ['node_modules/.bin/next', 'start', '--port', `${port}`] as const
  await serve(project, [...start], /Ready/, { ...variables, NEXT_TELEMETRY_DISABLED: '1' })
  const origin = `http://localhost:${port}`
  expect(await textOf(origin, { headers: { 'X-Request-Id': 'from-the-browser' } })).toContain(EXACT)
  expect(service.logged.join()).toContain('"requestId":"from-the-browser"')
  const counts = [await textOf(`${origin}/cached`), await textOf(`${origin}/cached`)]
  expect(counts).toEqual(['2', '2'])
  expect(await service.sql('select count(*) as pets from pets')).toEqual([{ pets: 3n }])
  return 'a page calls the service with its request id, and hands exact ids to the browser; only queries are cached'
})

// SvelteKit 3 takes no other version of TypeScript.
const SVELTE = ['svelte', '@sveltejs/vite-plugin-svelte', 'vite', 'typescript@6', '@types/node']
npmTrial('SvelteKit', ['@sveltejs/kit@latest', ...SVELTE, client], async (project) => {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const { variables } = await serviceWithPet({ CORS_ORIGINS: origin })
  const onServer = sample('// +page.server.ts')
  const page =
    '<script>let { data } = $props()</script>{#each data.pets as { id }}<p>{id}</p>{/each}'
  const compilerOptions = { strict: true, types: ['node'] }
  writeAll(project, {
    'vite.config.js': `import { sveltekit } from '@sveltejs/kit/vite'
      export default { plugins: [sveltekit()] }`,
    'tsconfig.json': JSON.stringify({
      extends: '$app/tsconfig',
      compilerOptions,
      include: ['src'],
    }),
    'src/app.html': '<html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
    'src/routes/+page.server.ts': onServer,
    'src/routes/+page.svelte': page,
    // In a load of both sides, SvelteKit's fetch keeps what is read from an answer for the browser.
    'src/routes/both/+page.ts': onServer
      .replaceAll('PageServerLoad', 'PageLoad')
      .replace('process.env', JSON.stringify(variables)),
    'src/routes/both/+page.svelte': page,
  })
  await shell(project, 'node_modules/.bin/vite build && node_modules/.bin/tsc --noEmit')
  const preview = ['node_modules/.bin/vite', 'preview', '--port', `${port}`] as const
  await serve(project, [...preview], /Local/, variables)
  expect(await textOf(origin)).toContain(`<p>${EXACT}</p>`)
  const both = await textOf(`${origin}/both`)
  expect(both).toContain(`<p>${EXACT}</p>`)
  expect(both).toContain('data-sveltekit-fetched')
  return "both kinds of `load` call the service by SvelteKit's `fetch`, with exact ids"
})

const GATEWAY = `import express from 'express'
  import { createProxyMiddleware } from 'http-proxy-middleware'
  const [target, port] = process.argv.slice(2)
  express()
    .use((req, res, next) =>
      req.headers['x-gateway-token'] === 'valid' ? next() : res.status(403).send('<h1>Forbidden</h1>'))
    .use(createProxyMiddleware({ target }))
    .listen(Number(port), '127.0.0.1', () => console.log('Ready'))`
npmTrial(
  'http-proxy-middleware as a gateway',
  ['http-proxy-middleware', 'express', client],
  async (project) => {
    const { service, variables } = await serviceWithPet()
    writeAll(project, { 'gateway.js': GATEWAY, 'petstore.ts': sample('// gateway.ts') })
    const port = await freePort()
    await serve(project, [process.execPath, 'gateway.js', service.origin, `${port}`], /Ready/)
    const load = (file: string) => import(pathToFileURL(path.join(project.folder, file)).href)
    const { petstoreBehindGateway } = await load('petstore.ts')
    const { httpStatusOf, isApiError } = await load(
      'node_modules/@petstore-catalogue/petstore/dist/client/src/client.js',
    )
    const tokens = ['valid', 'valid', 'valid', 'valid', 'expired']
    const url = `http://127.0.0.1:${port}/trpc`
    const token = async () => tokens.shift()
    const { createPet, getPet, listPets } = petstoreBehindGateway(
      url,
      variables.PETSTORE_KEY,
      token,
    )
    const [pet] = await listPets.query()
    expect(pet.id).toBe(BigInt(EXACT))
    const context = { idempotencyKey: 'once' }
    const create = () => createPet.mutate({ name: 'Rex', categoryId: 1 }, { context })
    expect(await create()).toEqual(await create())
    const errorOf = (call: Promise<unknown>) => call.catch((error: unknown) => error)
    const missing = await errorOf(getPet.query({ petId: 7 }))
    expect([isApiError(missing), httpStatusOf(missing)]).toEqual([true, 404])
    const refused = await errorOf(getPet.query({ petId: 7 }))
    expect([isApiError(refused), httpStatusOf(refused)]).toEqual([false, 403])
    return 'a token that the client fetches for each request lets it through; keys, ids and errors stay'
  },
)
