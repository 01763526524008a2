/** The docs page in a real browser. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { readDocument } from '../../docs-page/src/document.ts'
import { barriers, setFontSize, smallest, startBrowser, tooWide } from '../support/browser.ts'
import { serviceForFile } from '../support/service.ts'

const run = promisify(execFile)
const desktop = { width: 1280, height: 900 }
const phone = { width: 360, height: 740 }
/** The maximum id, which the numbers of JavaScript round to 9223372036854776000. */
const big = '{"name":"Big","categoryId":9223372036854775807}'

const service = await serviceForFile({ STAGING_URL: 'https://staging.petstore.example/v1' })
let page: Page
/** What the console reports, violations of the Content-Security-Policy among it. */
const reported: string[] = []
const foreign: string[] = []

const browser = await startBrowser()
afterAll(() => browser.close())

/** Opens the page in a tab of its own. */
async function open(options: BrowserContextOptions = {}): Promise<void> {
  await page?.context().close()
  page = await browser.newPage({ viewport: desktop, ...options })
  page.setDefaultTimeout(10_000)
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) reported.push(message.text())
  })
  page.on('pageerror', (error) => reported.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${service.origin}/`)) foreign.push(request.url())
  })
  await page.goto(service.origin)
}
beforeEach(() => open())
afterEach(() => {
  expect(reported.splice(0)).toEqual([])
  expect(foreign.splice(0)).toEqual([])
})

const operation = (id: string) => page.locator(`#${id}`)
const field = (id: string, name: string) => operation(id).getByLabel(name, { exact: true })
const keyField = () => page.getByLabel('API key', { exact: true })
const answerOf = (id: string) => operation(id).getByRole('group', { name: 'Answer', exact: true })
const sendButton = (id: string) => operation(id).getByRole('button', { name: 'Send' })

/** Sends the form of an operation, and returns the status and the body that the page shows. */
async function send(id: string): Promise<{ status: string; body: string }> {
  await sendButton(id).click()
  const answer = answerOf(id)
  const line = answer.getByRole('status')
  await line.getByText(/^\d{3} /).waitFor()
  const status = await line.innerText()
  return { status, body: await answer.locator('pre').first().innerText() }
}

async function create(body: string): Promise<{ status: string; body: string }> {
  await keyField().fill(service.key)
  await field('createPet', 'Body').fill(body)
  return await send('createPet')
}

test('every text of the document is on the page, without scripts, too', async () => {
  await open({ javaScriptEnabled: false })
  const served = await fetch(`${service.origin}/v1/openapi.json`)
  const document = readDocument(await served.text())
  const bare = (text: string) => text.replaceAll(/[`\\\s]+/g, '')
  const shown = bare(String(await page.locator('main').textContent()))
  const { paths, components, servers } = document
  const texts = [...JSON.stringify({ paths, components, servers }).matchAll(TEXTS)]
    .map(([, text]) => String(JSON.parse(`"${text}"`)))
    .concat(Object.keys(components.schemas ?? {}), Object.keys(components.headers ?? {}))
  expect(texts.length).toBeGreaterThan(50)
  for (const text of texts) if (!shown.includes(bare(text))) expect.soft(text).toBe('on the page')
  for (const [, name = ''] of `${document.info.description}`.matchAll(/^## (.*)$/gm)) {
    const link = page.getByRole('navigation').getByRole('link', { name, exact: true }).first()
    const target = page.locator(`${await link.getAttribute('href')}`)
    await target.getByRole('heading', { name }).waitFor()
  }
  // No form promises what it cannot do.
  expect(await page.locator('form:visible').count()).toBe(0)
})

const TEXTS = /"(?:description|summary|url|message|source)":"((?:[^"\\]|\\.)*)"/g

test('createPet and listPets work with a key, and an id has all its digits', async () => {
  const sent = page.waitForRequest((request) => request.method() === 'POST')
  const made = await create(big)
  expect(made.status).toBe('201 Created')
  expect((await sent).postData()).toBe(big)
  expect(made.body).toContain('"categoryId": 9223372036854775807,')
  expect(await answerOf('createPet').innerText()).toMatch(/location: \S+/)
  await field('listPets', 'status').selectOption('available')
  await field('listPets', 'limit').fill('100')
  const list = page.waitForRequest(/v1\/pets/)
  expect((await send('listPets')).body).toContain('"categoryId": 9223372036854775807,')
  // It goes to the server of the page, whatever the public address of the service is.
  expect((await list).url()).toBe(`${service.origin}/v1/pets?limit=100&status=available`)
})

test('a key that no header can carry, or with spaces around it, is a message or trimmed', async () => {
  await keyField().fill(`${service.key}\u200b`)
  await sendButton('listPets').click()
  const state = answerOf('listPets').getByRole('status')
  await state.getByText('The API key has a character that is not part of any key').waitFor()
  await keyField().fill(` ${service.key} `)
  expect((await send('listPets')).status).toBe('200 OK')
})

test('an example is only a hint: what is left empty is not sent', async () => {
  const keys: (string | undefined)[] = []
  await page.route('**/v1/pets', (route) => {
    keys.push(route.request().headers()['idempotency-key'])
    return route.fulfill({ status: 201, body: '{}' })
  })
  await send('createPet')
  await field('createPet', 'Idempotency-Key').fill('"mine"')
  await send('createPet')
  expect(keys).toEqual([undefined, '"mine"'])
  await sendButton('getPet').click()
  expect(await page.evaluate('document.activeElement.id')).toBe('getPet-petId')
  expect(await answerOf('getPet').innerText()).toBe('')
})

test('the samples for curl run', async () => {
  const statuses = { createPet: 201, listPets: 200, getPet: 404 }
  for (const [id, status] of Object.entries(statuses)) {
    const sample = await operation(id).getByRole('group', { name: 'curl' }).innerText()
    const code = sample.replace(service.baseUrl, `${service.origin}/v1`)
    const { stdout } = await run('sh', ['-c', code], {
      env: { PATH: process.env.PATH, API_KEY: service.key },
    })
    expect(stdout, code).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  }
})

test('a form is busy during a request, and sends once for two clicks', async () => {
  let posts = 0
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/v1/pets', async (route) => {
    posts++
    await held
    await route.continue()
  })
  await keyField().fill(service.key)
  await sendButton('createPet').dblclick()
  expect(await answerOf('createPet').innerText()).toBe('Sending …')
  expect(await sendButton('createPet').getAttribute('aria-busy')).toBe('true')
  release()
  await answerOf('createPet').getByText('201 Created').waitFor()
  expect(posts).toBe(1)
})

test('a request without an answer ends with a message', async () => {
  await page.evaluate(`{
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    AbortSignal.timeout = (milliseconds) => timeout(milliseconds / 100)
  }`)
  await page.route('**/v1/pets', () => {}) // answers nothing
  await sendButton('listPets').click()
  await answerOf('listPets').getByText('There was no answer: ').waitFor()
  expect(await sendButton('listPets').getAttribute('aria-busy')).toBe('false')
})

test('an answer is shown as it came, and a form works again after a failure', async () => {
  const bodies = ['{"id":1.00}', '<p>not JSON</p>']
  await page.route('**/v1/pets', (route) =>
    route.fulfill({ status: 502, body: `${bodies.shift()}` }),
  )
  expect((await send('listPets')).body).toBe('{\n  "id": 1.00\n}')
  expect((await send('listPets')).body).toBe('<p>not JSON</p>')
  await page.route('**/v1/pets', (route) => route.abort())
  await sendButton('listPets').click()
  await answerOf('listPets').getByText('There was no answer: Failed to fetch').waitFor()
  await page.unrouteAll()
  const refused = await send('listPets')
  expect(refused.status).toBe('401 Unauthorized')
  expect(refused.body).toContain('"code": "UNAUTHORIZED"')
  expect(reported.splice(0).length).toBe(4) // lines of the browser about the failures
})

test.each(Object.entries({ desktop, phone }))(
  'on a %s axe finds nothing in either color scheme, and nothing is cut off',
  async (_device, viewport) => {
    await page.setViewportSize(viewport)
    await create(big)
    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for (const colorScheme of ['light', 'dark'] as const) {
      expect(await barriers(page, colorScheme), colorScheme).toEqual([])
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    const changed = page.locator('pre:not([translate=no]), select:not([translate=no])')
    expect(await changed.count(), 'translated by a browser').toBe(0)
    // Words and code stand side by side where there is room.
    const [words, code] = await Promise.all(
      ['words', 'code'].map((part) => page.locator(`#listPets > .${part}`).boundingBox()),
    )
    expect(words?.y === code?.y).toBe(viewport === desktop)
  },
)

test('on a phone the contents are folded up, and again at a click on one of their links', async () => {
  await open({ viewport: phone })
  const contents = page.getByRole('navigation').locator('details')
  expect(await contents.getAttribute('open')).toBeNull()
  await contents.locator('summary').click()
  await contents.getByRole('link', { name: 'Errors' }).click()
  expect(await contents.getAttribute('open')).toBeNull()
})

test.each(Object.entries(smallest))(
  '%s the page is not wider than the window',
  async (_, { viewport, fontSize }) => {
    await open({ viewport })
    await setFontSize(page, fontSize)
    await create(big)
    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    expect(await tooWide(page)).toEqual([])
  },
)

test('the key is kept for the tab only if its checkbox is checked', async () => {
  const keep = page.getByLabel('Keep it in this tab')
  expect(await keyField().getAttribute('type')).toBe('password')
  // With `off`, browsers fill a saved password in.
  expect(await keyField().getAttribute('autocomplete')).toBe('new-password')
  await keyField().fill('secret')
  await page.reload()
  expect(await keyField().inputValue()).toBe('')
  await keyField().fill('secret')
  await keep.check()
  await keyField().press('Enter') // sends nothing, and keeps the page
  await page.reload()
  expect([await keyField().inputValue(), await keep.isChecked()]).toEqual(['secret', true])
  await keep.uncheck()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  // A browser that stores nothing is enough.
  const denied = "{ get() { throw new DOMException('', 'SecurityError') } }"
  await page.addInitScript(`Object.defineProperty(window, 'sessionStorage', ${denied})`)
  await page.reload()
  await keep.check()
  expect((await create(big)).status).toBe('201 Created')
})

test('code has a button that copies it', async () => {
  const pre = operation('listPets').getByRole('group', { name: 'Example of 200' })
  expect(await pre.locator('.number').first().innerText()).toBe('42')
  const copy = pre.locator('..').getByRole('button')
  await page.evaluate('navigator.clipboard.writeText = async (text) => void (window.copied = text)')
  await copy.click()
  await operation('listPets').getByRole('button', { name: 'Copied' }).waitFor()
  expect(await page.evaluate('window.copied')).toBe(await pre.textContent())
})

test('printed, nothing of the documentation is missing, and no form is there', async () => {
  await page.emulateMedia({ media: 'print' })
  const hidden = await page.evaluate(`[...document.querySelectorAll('main :is(p, dt, dd, pre, td)')]
    .filter((part) => !part.closest('form') && !part.checkVisibility())
    .map((part) => part.textContent)`)
  expect(hidden).toEqual([])
  const cut = await page.evaluate(`[...document.querySelectorAll('pre')]
    .filter((pre) => pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight)
    .map((pre) => pre.textContent)`)
  expect(cut).toEqual([])
  expect(await page.locator('form:visible').count()).toBe(0)
})

test('with forced colors an answer that is open looks different', async () => {
  await page.emulateMedia({ forcedColors: 'active' })
  const line = operation('listPets').locator('summary').last()
  const closed = await line.screenshot()
  await line.click()
  await page.mouse.move(0, 0)
  expect(closed.equals(await line.screenshot())).toBe(false)
})
