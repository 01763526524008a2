/** The files of the docs page, their caching and their compression. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { docsPage } from '../../docs-page/src/page.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write } from '../../src/procedure/write.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { runServer } from '../support/process.ts'
import { serviceForFile, startService } from '../support/service.ts'

const service = await serviceForFile()
const html = await (await fetch(`${service.origin}/docs/`)).text()
/** The page, and what it loads. */
const paths = ['/docs/', '/docs/docs.css', '/docs/docs.js', '/docs/icon.svg']
/** The document, as gateways fetch it at each start, and as a reader downloads it. */
const documents = ['/v1/openapi.json', '/docs/openapi.json']

const ask = (path: string, init: RequestInit = {}) =>
  fetch(service.origin + path, { redirect: 'manual', ...init })

/** The response to a client that accepts these encodings. fetch would decode it and add headers. */
async function askRaw(path: string, encodings: string, known?: string) {
  const headers = {
    'accept-encoding': encodings,
    ...(known !== undefined && { 'if-none-match': known }),
  }
  const sent = get(service.origin + path, { agent: false, headers })
  const [answer] = (await once(sent, 'response')) as [IncomingMessage] // what the event brings
  return { status: answer.statusCode, bytes: await buffer(answer), headers: answer.headers }
}

test('the start warns of a document that lacks an operation, or has one too many', async () => {
  const published = readFileSync('openapi.json', 'utf8')
  const warnings = async (document: string) => {
    const { logged, stop } = await startService({}, { document })
    await stop()
    return logged.filter((line) => line.includes('openapi.json'))
  }
  expect(await warnings(published)).toEqual([])
  const differences = 'GET /pets/{petId} (readPet), GET /pets/{petId} (getPet)'
  expect(await warnings(published.replace('"getPet"', '"readPet"'))).toEqual([
    expect.stringContaining(`out of date: run npm run openapi, for ${differences}"`),
  ])
})

test('a query by POST is not said to change something', async () => {
  const input = z.object({ text: z.string() }).meta({ id: 'Search' })
  const meta = (path: `/${string}`) =>
    described('POST', path, { example: 'Rex', exampleInput: { text: 'R' } })
  const on = procedure.input(input).output(z.string())
  const served = router({
    search: on.meta(meta('/search')).query(() => 'Rex'),
    change: on.meta(meta('/change')).mutation(({ ctx }) => write(ctx, async () => 'Rex')),
  })
  const { fetch, stop } = await startService({}, { resources: resourcesOf(served) })
  onTestFinished(stop)
  const page = await (await fetch('/docs/')).text()
  const [, search, change] = page.split('class="trial"')
  expect([search, change].map((form) => form?.includes('changes real data'))).toEqual([false, true])
})

test('the page loads these files', () => {
  const links = [...html.matchAll(/(?:src|href)="([\w.]+)"/g)].map(([, name]) => `/docs/${name}`)
  expect(new Set(['/docs/', ...links])).toEqual(new Set([...paths, '/docs/openapi.json']))
})

const all = [...paths, ...documents]
const forms = all.flatMap((path) => ['gzip, br', 'identity'].map((form) => [path, form] as const))

test.each(forms)('%s (%s): If-None-Match returns 304 without content', async (path, accepted) => {
  const first = await askRaw(path, accepted)
  const tag = String(first.headers.etag)
  for (const known of [tag, `"other", ${tag}`, `"other",W/${tag}`, '*']) {
    const again = await askRaw(path, accepted, known)
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, tag])
    // A Content-Length here would be that of the file (RFC 9110, section 8.6).
    expect(again.headers['content-length']).toBe(undefined)
    // A browser takes these of a 304 for those that it has stored.
    const cors = 'access-control-allow-origin'
    expect(again.headers[cors]).toBe(documents.includes(path) ? '*' : undefined)
  }
  expect((await askRaw(path, accepted, '"other"')).bytes).toEqual(first.bytes)
  // fetch, of Node and of browsers, adds `Cache-Control: no-cache` to this request.
  const headers = { 'accept-encoding': accepted, 'if-none-match': tag }
  expect((await ask(path, { headers })).status).toBe(304)
})

test.each(all)('%s is compressed if the client accepts it', async (path) => {
  const plain = await askRaw(path, 'identity')
  for (const accepted of ['gzip, deflate, br, zstd', 'identity;q=0.5, *;q=1', 'gzip;q=0.1']) {
    const packed = await askRaw(path, accepted)
    expect(packed.headers['content-encoding']).toBe('gzip')
    expect(packed.headers.etag).not.toBe(plain.headers.etag)
    expect(gunzipSync(packed.bytes)).toEqual(plain.bytes)
  }
  for (const accepted of ['', 'br', 'gzip;q=0', 'identity, gzip;q=0.5']) {
    expect((await askRaw(path, accepted)).bytes, accepted).toEqual(plain.bytes)
  }
})

test('the page and its files are small', async () => {
  const packed = await Promise.all(paths.map((path) => askRaw(path, 'gzip')))
  // The page has all operations of the document.
  const document = JSON.parse(await (await ask('/docs/openapi.json')).text())
  const total = packed.reduce((sum, { bytes }) => sum + bytes.length, 0)
  expect(total).toBeLessThan(17_000 + 1_000 * Object.keys(document.paths).length)
})

test('openapi.json is the document with line breaks', async () => {
  const answer = await ask('/docs/openapi.json')
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="openapi.json"')
  const text = await answer.text()
  expect(text.split('\n').length).toBeGreaterThan(500)
  const served = await (await ask('/v1/openapi.json')).text()
  expect(text.replaceAll(/\n */g, '').replaceAll('": ', '":')).toBe(served.replaceAll('": ', '":'))
})

test('the page escapes the texts of the document, and shows fields that a later resource has', () => {
  const one = { type: 'integer', format: 'int64' }
  const properties = {
    owner: { anyOf: [{ $ref: '#/components/schemas/Owner' }, { type: 'null' }] },
    note: { anyOf: [{ type: 'string', minLength: 1, maxLength: 40 }, { type: 'null' }] },
    visits: { type: ['array', 'null'], items: one, minItems: 1 },
    place: { type: 'object', properties: { '<b>': { ...one, maximum: 2 } }, required: ['<b>'] },
  }
  const schemas = { Owner: { type: 'string' }, Clinic: { type: 'object', properties } }
  const info = { title: '"A" & <B>', version: '1' }
  const made = docsPage(JSON.stringify({ info, paths: {}, components: { schemas } }), '../v1')
  expect(made).toContain('<title>&#34;A&#34; &#38; &#60;B&#62;: the REST interface</title>')
  const text = made.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
  expect(text).toContain('note string or null 1 to 40 characters')
  expect(text).toContain('owner Owner or null note string')
  expect(text).toContain('visits array of integer (int64) at least 1 items')
  expect(text).toContain('&#60;b&#62; integer (int64) required at most 2')
  expect(text).not.toMatch(/undefined|\[object/)
})

test('the page is found behind a proxy that removes the prefix of a path', async () => {
  const proxy = createServer(async (req, res) => {
    const answer = await ask(String(req.url).replace('/animals/', '/'))
    const location = answer.headers.get('location')
    res.writeHead(answer.status, location === null ? {} : { location }).end(await answer.text())
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void proxy.close().closeAllConnections())
  await once(proxy, 'listening')
  const prefix = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/animals`
  for (const path of ['/', '/docs']) {
    const page = await fetch(prefix + path)
    expect(page.url).toBe(`${prefix}/docs/`)
    expect(await page.text()).toBe(html)
    // Where its forms send to.
    const [, api = ''] = /data-api="([^"]+)"/.exec(html) ?? []
    expect(new URL(api, page.url).href).toBe(`${prefix}/v1`)
  }
})

test('the docs page is there in a copy without links, and with preserved ones', async () => {
  // A package in node_modules may have no TypeScript.
  const server = await runServer({ NODE_PRESERVE_SYMLINKS: '1', DATABASE_URL: 'sqlite:x?create' })
  onTestFinished(async () => void (await server.end()))
  expect((await fetch(`${server.origin}/docs/`)).status).toBe(200)
})
