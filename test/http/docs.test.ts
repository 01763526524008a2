/** The way to the docs page, and what a browser need not load twice. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { converse } from '../support/raw.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
/** The paths of the page and of what it loads. */
let files: string[]
beforeAll(async () => {
  service = await startService()
  const html = await (await fetch(`${service.origin}/docs/`)).text()
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => String(link))
  const paths = ['', ...links].map((link) => new URL(link, `${service.origin}/docs/`).pathname)
  files = [...new Set(paths)].filter((path) => path.startsWith('/docs/'))
})
afterAll(() => service.stop())

const ask = (path: string, init: RequestInit = {}) =>
  fetch(service.origin + path, { redirect: 'manual', ...init })

test.each(['/', '/docs'])('%s leads to the docs page, without a key', async (path) => {
  for (const method of ['GET', 'HEAD']) {
    const answer = await ask(path, { method })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/docs/'])
  }
  const page = await ask('/docs/')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toMatch(/^text\/html/)
})

/** The status and the tag of the answer to who has the file with these tags; fetch would add to it. */
async function askAgain(path: string, tags: string) {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: close', `If-None-Match: ${tags}`]
  const { answers } = await converse(service.origin, `${lines.join('\r\n')}\r\n\r\n`)
  const [answer] = answers
  return { status: answer?.status, body: answer?.body, tag: answer?.headers.get('etag') }
}

test('what a browser has already is not sent again', async () => {
  expect(files.length).toBeGreaterThan(3)
  for (const path of files) {
    const first = await ask(path)
    expect(first.status, path).toBe(200)
    expect(first.headers.get('cache-control'), path).toBe('no-cache')
    const body = await first.text()
    expect(body.length, path).toBeGreaterThan(100)
    const tag = String(first.headers.get('etag'))
    expect(tag, path).toMatch(/^(W\/)?"[^"]+"$/)
    for (const known of [tag, `"other", ${tag}`, '*']) {
      expect(await askAgain(path, known), path).toEqual({ status: 304, body: '', tag })
    }
    expect(await askAgain(path, '"other"'), path).toEqual({ status: 200, body, tag })
  }
})

test('each file has a tag of its own', async () => {
  const tags = await Promise.all(files.map(async (path) => (await ask(path)).headers.get('etag')))
  expect(new Set(tags).size).toBe(files.length)
})
