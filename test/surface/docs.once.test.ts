/** The files of the docs page, their caching and their compression. */
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { assets } from 'docs-page'
import { expect, onTestFinished, test, vi } from 'vitest'
import { everyHeader } from '../support/headers.ts'
import { operations } from '../support/operations.ts'
import { serviceForFile, startService } from '../support/service.ts'

const service = await serviceForFile()
const html = await (await fetch(`${service.origin}/docs/`)).text()
const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => String(link))
const script = await (await fetch(`${service.origin}/docs/docs.js`)).text()
const imports = [...script.matchAll(/from '([^']+)'/g)].map(([, file]) => String(file))
const addresses = ['', ...links, ...imports].map((link) => new URL(link, `${service.origin}/docs/`))
const paths = new Set(addresses.map(({ pathname }) => pathname))
/** The paths of the page and of the files that it loads. */
const files = [...paths].filter((path) => path.startsWith('/docs/'))

const ask = (path: string, init: RequestInit = {}) =>
  fetch(service.origin + path, { redirect: 'manual', ...init })

/** The headers of every file of the page, without those that differ between responses. */
const common = {
  'content-security-policy':
    "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
  ...everyHeader,
  'cache-control': 'no-cache',
  vary: 'Origin, Accept-Encoding',
  date: expect.any(String),
  connection: 'keep-alive',
  'keep-alive': 'timeout=65',
  'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
  etag: expect.stringMatching(/^"[\w-]{43}"$/),
}

test.each([
  ['', 'text/html; charset=utf-8'],
  ['docs.css', 'text/css; charset=utf-8'],
  ['docs.js', 'text/javascript; charset=utf-8'],
  ['code.js', 'text/javascript; charset=utf-8'],
  ['search.js', 'text/javascript; charset=utf-8'],
  ['samples.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'image/svg+xml'],
])('/docs/%s has these headers and no others, and is nowhere else', async (file, type) => {
  const path = `/docs/${file}`
  const whole = await ask(path, { headers: { 'accept-encoding': 'identity' } })
  const headers = { ...common, 'content-type': type }
  const length = String((await whole.bytes()).length)
  expect(Object.fromEntries(whole.headers)).toEqual({ ...headers, 'content-length': length })
  const packed = await ask(path, { headers: { 'accept-encoding': 'gzip' } })
  expect(Object.fromEntries(packed.headers)).toEqual({
    ...headers,
    'content-encoding': 'gzip',
    'content-length': expect.stringMatching(/^\d+$/),
  })
  const etag = String(whole.headers.get('etag'))
  const known = await askRaw(path, 'identity', etag)
  const { 'keep-alive': _, ...once } = { ...headers, connection: 'close' }
  expect([known.status, known.headers]).toEqual([304, once])
  for (const other of [path.toUpperCase(), file === '' ? '/docs/index.html' : `${path}/`]) {
    expect((await ask(other)).status, other).toBe(404)
  }
  const posted = await ask(path, { method: 'POST' })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('quotes in an example do not close the HTML attribute', async () => {
  const html = await (await ask('/docs/')).text()
  expect(html).toContain('placeholder="&#34;8e03978e-40d5-43e8-bc93-6894a57f9324&#34;"')
})

/** The response to a client that accepts these encodings. fetch would decode it and add headers. */
async function askRaw(path: string, encodings: string, known?: string) {
  const headers = {
    'accept-encoding': encodings,
    ...(known !== undefined && { 'if-none-match': known }),
  }
  const sent = get(service.origin + path, { agent: false, headers })
  const [answer] = (await once(sent, 'response')) as [IncomingMessage] // what the event brings
  const header = (name: string) => answer.headers[name]
  return {
    status: answer.statusCode,
    bytes: await buffer(answer),
    tag: String(header('etag')),
    header,
    headers: answer.headers,
  }
}

const encodings = ['gzip, deflate, br, zstd', 'identity']

test.each(encodings)(
  'If-None-Match with the current ETag returns 304 without content (%s)',
  async (accepted) => {
    expect(files.length).toBeGreaterThan(3)
    for (const path of files) {
      const first = await askRaw(path, accepted)
      expect(first.status, path).toBe(200)
      expect(first.bytes.length, path).toBeGreaterThan(100)
      const { tag } = first
      expect(tag, path).toMatch(/^(W\/)?"[^"]+"$/)
      for (const known of [tag, `"other", ${tag}`, '*']) {
        const again = await askRaw(path, accepted, known)
        expect([again.status, again.bytes.length, again.tag], path).toEqual([304, 0, tag])
        // A Content-Length here would be that of the file (RFC 9110, section 8.6).
        expect(again.header('content-length'), path).toBe(undefined)
      }
      const other = await askRaw(path, accepted, '"other"')
      expect([other.status, other.bytes, other.tag], path).toEqual([200, first.bytes, tag])
    }
  },
)

test('files are compressed if the client accepts it', async () => {
  for (const path of files) {
    const plain = await askRaw(path, 'identity')
    expect(plain.header('content-encoding'), path).toBeUndefined()
    for (const accepted of [
      'gzip',
      'gzip, deflate, br, zstd',
      'identity;q=0.5, *;q=1',
      'gzip;q=0.1',
      '*',
    ]) {
      const packed = await askRaw(path, accepted)
      expect(packed.header('content-encoding'), path).toBe('gzip')
      expect(packed.header('content-length'), path).toBe(String(packed.bytes.length))
      const disposition = plain.header('content-disposition')
      expect(packed.header('content-disposition'), path).toBe(disposition)
      expect(gunzipSync(packed.bytes), path).toEqual(plain.bytes)
      expect(packed.bytes.length, path).toBeLessThan(plain.bytes.length)
    }
    for (const accepted of ['', 'br', 'gzip;q=0', 'identity, gzip;q=0.5', 'compress;q=1']) {
      expect((await askRaw(path, accepted)).bytes, `${path}: ${accepted}`).toEqual(plain.bytes)
    }
  }
  const loaded = files.filter((path) => path !== '/docs/openapi.json')
  const sizes = await Promise.all(loaded.map((path) => askRaw(path, 'gzip')))
  const total = sizes.reduce((sum, { bytes }) => sum + bytes.length, 0)
  // Bytes of the whole page, for phones, and of each operation.
  expect(total).toBeLessThan(24_000 + 2_000 * operations.length)
})

test('each file has its own ETag in each encoding', async () => {
  const answers = files.flatMap((path) => encodings.map((accepted) => askRaw(path, accepted)))
  const tags = (await Promise.all(answers)).map(({ tag }) => tag)
  expect(new Set(tags).size).toBe(files.length * encodings.length)
})

test('openapi.json is the document with line breaks', async () => {
  const text = await (await ask('/docs/openapi.json')).text()
  expect(text.split('\n').length).toBeGreaterThan(500)
  expect(text).toContain('"maximum": 9223372036854775807')
  const served = await (await ask('/v1/openapi.json')).text()
  expect(text.replaceAll(/\n */g, '').replaceAll('": ', '":')).toBe(served.replaceAll('": ', '":'))
})

test('the log has one line for the page, and one for a file that fails', async () => {
  const lines = () =>
    service.logged
      .map((line) => JSON.parse(line) as { level: number; path?: string; status?: number })
      .filter(({ level, path }) => level >= 30 && path?.startsWith('/docs/'))
      .map(({ path, status }) => `${path} ${status}`)
  const before = lines().length
  for (const path of files.filter((path) => path !== '/docs/openapi.json')) {
    const answer = await ask(path)
    const tag = String(answer.headers.get('etag'))
    await answer.bytes()
    // fetch would send Cache-Control: no-cache and receive the whole file.
    if (path !== '/docs/') expect((await askRaw(path, 'gzip', tag)).status).toBe(304)
  }
  await ask('/docs/docs.css', { method: 'POST' })
  await ask('/docs/other.css')
  await expect
    .poll(() => lines().slice(before))
    .toEqual(['/docs/ 200', '/docs/docs.css 405', '/docs/other.css 404'])
})

test('HEAD returns the headers of GET for a file', async () => {
  const { headers } = await ask('/docs/', {
    method: 'HEAD',
    headers: { 'accept-encoding': 'gzip' },
  })
  const { bytes } = await askRaw('/docs/', 'gzip')
  expect(headers.get('content-length')).toBe(String(bytes.length))
})

test('the page and its files are made once', async () => {
  const reads = vi.spyOn(assets['docs.css'], 'read')
  onTestFinished(() => reads.mockRestore())
  const other = await startService()
  onTestFinished(() => other.stop())
  for (const path of ['', 'docs.css', '', 'openapi.json']) {
    expect((await fetch(`${other.origin}/docs/${path}`)).status).toBe(200)
  }
  expect(reads).toHaveBeenCalledTimes(1)
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
