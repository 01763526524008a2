/** The docs page in a real browser. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { docsPage } from 'docs-page'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openApiDocument } from '../../src/surface/rest/openapi/document.ts'
import { operationsOf } from '../../src/surface/rest/operations.ts'
import { barriers, startBrowser } from '../support/browser.ts'
import { serviceForFile } from '../support/service.ts'
import { visitResources } from '../visits/router.ts'
import { oddDocument } from './odd-document.ts'

const desktop = { width: 1280, height: 900 }
const phone = { width: 360, height: 740 }
/** The maximum id, which the numbers of JavaScript round to 9223372036854776000. */
const big = '{"name":"Big","categoryId":9223372036854775807}'

const service = await serviceForFile({ STAGING_URL: 'https://staging.petstore.example/v1' })
let browser: Browser
/** One page for all tests, because a new page takes longer than most tests. */
let kept: Page | undefined
let page: Page
const consoleErrors: string[] = []
const foreign: string[] = []

beforeAll(async () => {
  browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
})

/** Opens a page. The console has the violations of its Content-Security-Policy. */
async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
  const opened = await browser.newPage(options)
  opened.setDefaultTimeout(10_000)
  opened.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) consoleErrors.push(message.text())
  })
  opened.on('pageerror', (error) => consoleErrors.push(error.message))
  opened.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${service.origin}/`)) foreign.push(url)
  })
  return opened
}

/** Reloads the page, by default on a desktop in the light color scheme. */
async function open(viewport = desktop): Promise<void> {
  kept ??= await newPage()
  page = kept
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(service.origin)
  await operation('listPets')
    .getByRole('form', { includeHidden: true })
    .waitFor({ state: 'attached' })
}
beforeEach(() => open())
afterEach(async ({ task }) => {
  if (page !== kept) await page.context().close()
  await kept?.unrouteAll()
  if (task.result?.state === 'fail') {
    await kept?.context().close()
    kept = undefined
  }
  expect(consoleErrors.splice(0)).toEqual([])
  expect(foreign.splice(0)).toEqual([])
})

/** Shows the page of another document. */
async function show(document: string): Promise<void> {
  const body = docsPage(document, '../v1')
  await page.route('**/docs/', (route) => route.fulfill({ body, contentType: 'text/html' }))
  await page.reload()
}

const operation = (id: string) => page.locator(`#${id}`)
const line = (id: string) => operation(id).locator('summary').first()
/** Opens the details of an operation. */
const unfold = async (id: string) => {
  if ((await operation(id).getAttribute('open')) === null) await line(id).click()
}
/** Fills the field for the API key, which all forms share. */
const enterKey = (key: string) => page.getByLabel('API key', { exact: true }).fill(key)
const answerOf = (id: string) => operation(id).getByRole('group', { name: 'Answer', exact: true })
const sampleOf = (id: string) => operation(id).locator('.samples pre')

/** Sends the form of an operation, and returns the status and the body that the page shows. */
async function send(id: string): Promise<{ status: string; body: string }> {
  await operation(id).getByRole('button', { name: 'Send' }).click()
  const answer = answerOf(id)
  await answer.getByText(' ms').waitFor()
  const status = await answer.getByRole('status').innerText()
  return { status: status.slice(0, 3), body: await answer.locator('pre').first().innerText() }
}

/** Opens all details. */
const unfoldAll = () =>
  page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")

async function create(text: string): Promise<{ status: string; body: string }> {
  await unfold('createPet')
  await enterKey(service.key)
  await operation('createPet').getByLabel('Body').fill(text)
  return send('createPet')
}

test('the whole page, as a screen reader reads it', async () => {
  await unfoldAll()
  // One error, of getPet, is enough: the texts of all errors are in the document.
  await page.evaluate(`for (const each of document.querySelectorAll('.response')) {
    const { status } = each.dataset
    if (status >= '4' && !(status === '404' && each.closest('#getPet'))) each.remove()
  }`)
  const text = await page.locator('body').ariaSnapshot()
  const stable = text.replaceAll(service.origin, 'http://127.0.0.1:3000')
  // `vitest run -u` updates it.
  await expect(`${stable}\n`).toMatchFileSnapshot('docs.aria.yml')
})

test('createPet and listPets work with a key', async () => {
  const made = await create('{"name": "Rex", "categoryId": 3}')
  expect(made.status).toBe('201')
  const line = await answerOf('createPet').getByRole('status').innerText()
  expect(line).toMatch(/^201 Created · \d+ ms$/)
  const rex = JSON.parse(made.body)
  expect(rex).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 3, status: 'available' })
  await unfold('listPets')
  await operation('listPets')
    .getByLabel('cursor')
    .fill(String(rex.id - 1))
  const listed = await send('listPets')
  expect(listed.status).toBe('200')
  expect(JSON.parse(listed.body)).toEqual([rex])
  await answerOf('listPets').locator('summary').click()
  expect(await answerOf('listPets').innerText()).toMatch(/x-request-id: \S+/)
})

test('the maximum id has all its digits in the request and in the response', async () => {
  const sent = page.waitForRequest((request) => request.method() === 'POST')
  const { status, body } = await create(big)
  expect(status).toBe('201')
  expect((await sent).postData()).toBe(big)
  expect(body).toContain('"categoryId": 9223372036854775807,')
  expect(await sampleOf('createPet').innerText()).toContain(big)
  await unfold('listPets')
  expect((await send('listPets')).body).toContain('"categoryId": 9223372036854775807,')
})

test('an error response is shown unchanged', async () => {
  const { status, body } = await create('{"name":')
  expect(status).toBe('400')
  expect(JSON.parse(body).code).toBe('PARSE_ERROR')
  expect(consoleErrors.splice(0)).toEqual([expect.stringContaining('status of 400')]) // from Chromium
})

test('a double click sends one creation', async () => {
  let posts = 0
  const { promise: first, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/v1/pets', async (route) => {
    posts++
    await first
    await route.continue()
  })
  await unfold('createPet')
  await enterKey(service.key)
  await operation('createPet').getByRole('button', { name: 'Send' }).dblclick()
  release()
  await answerOf('createPet').getByText('201').waitFor()
  expect(posts).toBe(1)
  await send('createPet')
  await expect.poll(() => posts).toBe(2)
})

test('the page sends requests only to its own server', async () => {
  expect(await page.locator('main').innerText()).toContain('https://staging.petstore.example/v1')
  await unfold('listPets')
  await enterKey(service.key)
  const request = page.waitForRequest('**/v1/pets')
  await send('listPets')
  expect((await request).url()).toBe(`${service.origin}/v1/pets`)
  for (const select of await page.locator('select').all()) {
    expect(await select.innerText()).not.toContain('://')
  }
})

describe.each(Object.entries({ desktop, phone }))('on a %s', (device, viewport) => {
  test('axe finds no violations in the light and the dark color scheme', async () => {
    const colorSchemes = ['light', 'dark'] as const
    await open(viewport)
    await create(big)
    await unfoldAll()
    await page.locator('.panel pre').first().waitFor()
    for (const colorScheme of colorSchemes) {
      expect(await barriers(page, colorScheme), colorScheme).toEqual([])
      const ground = await page.evaluate(
        'getComputedStyle(document.documentElement).backgroundColor',
      )
      const [red = 0] = String(ground).match(/\d+/g)?.map(Number) ?? []
      expect(red > 128).toBe(colorScheme === 'light')
    }
    await page.getByRole('searchbox').fill('createPet')
    for (const colorScheme of colorSchemes)
      expect(await barriers(page, colorScheme), colorScheme).toEqual([])
  })

  test('nothing overflows the viewport, no number wraps, and an operation has a limited height', async () => {
    await open(viewport)
    await create(big)
    expect((await operation('createPet').boundingBox())?.height).toBeLessThan(
      device === 'phone' ? 4_400 : 3_000,
    )
    await unfoldAll()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    // A number that wraps has two rectangles.
    const cut = await page.evaluate(`[...document.querySelectorAll('.block pre:not(.lines)')]
      .filter((block) => block.scrollWidth > block.clientWidth)
      .map((block) => block.textContent)`)
    expect(cut).toEqual([])
    const broken =
      await page.evaluate(`[...document.querySelectorAll('pre, .bounds')].flatMap((block) => {
      const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT)
      const found = []
      while (walker.nextNode()) {
        for (const match of walker.currentNode.data.matchAll(/[0-9]{10,}/g)) {
          const range = document.createRange()
          range.setStart(walker.currentNode, match.index)
          range.setEnd(walker.currentNode, match.index + match[0].length)
          if (range.getClientRects().length > 1) found.push(match[0])
        }
      }
      return found
    })`)
    expect(broken).toEqual([])
  })
})

test('the keyboard is enough to send a request', async () => {
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const focused = () =>
    page.evaluate(
      '(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()',
    )
  const tabTo = async (text: RegExp) => {
    for (let steps = 0; steps < 120; steps++) {
      await press('Tab')
      if (text.test(String(await focused()))) return
    }
    throw new Error(`Tab does not lead to ${text}`)
  }
  await tabTo(/^Authentication$/)
  await press('Enter')
  await tabTo(/^API key$/)
  await page.keyboard.insertText(service.key)
  await tabTo(/^Add an animal/)
  await press('Enter')
  await tabTo(/^curl$/)
  await press('ArrowRight')
  await tabTo(/^Body$/)
  await press('Control+a')
  await page.keyboard.insertText(big)
  await tabTo(/^Send$/)
  await press('Enter')
  await answerOf('createPet').getByText('201').waitFor()
  expect(await sampleOf('createPet').innerText()).toContain('await fetch(')
})

test('search shows the entries that have all words', async () => {
  const visible = async () => {
    const entries = await page.locator('[data-entry]:visible').all()
    return Promise.all(entries.map((entry) => entry.getAttribute('id')))
  }
  const all = await visible()
  expect(all).toEqual(expect.arrayContaining(['listPets', 'createPet', 'getPet', 'schema-Pet']))
  const search = page.getByRole('searchbox', { name: 'Search' })
  await search.fill('idempotency post')
  expect(await visible()).toEqual(['createPet', 'guide-idempotency'])
  expect(await page.locator('.linked:has(> [hidden]) > .anchor:visible').count()).toBe(0)
  await page.getByText('Found: 1 operation, 1 guide').waitFor()
  await search.fill('createpet')
  expect(await visible()).toEqual(['createPet', 'guide-typescript-use-the-client'])
  await search.fill('categoryId')
  await page.getByText('Found: 3 operations, 1 guide, 3 schemas').waitFor()
  await page.locator('#schema-Pet dl').waitFor() // entries with a match inside are open
  await search.fill('unicorn')
  expect(await visible()).toEqual([])
  await page.getByText('Found: nothing').waitFor()
  await search.press('Enter') // leads nowhere
  expect(await search.inputValue()).toBe('unicorn')
  await search.fill('the') // by itself it is a word like others
  await page.getByText(/^Found: \d/).waitFor()
  await search.fill('')
  expect(await visible()).toEqual(all)
  expect(await page.locator('.entry[open]').count()).toBe(1) // the first operation
  await search.fill('idempotency post')
  await operation('createPet').getByLabel('Idempotency-Key').fill('what is typed')
  await search.fill('')
  await operation('createPet').locator('form').waitFor() // stays open, because its form is filled in
})

test('a link to an operation or a schema opens it, and the URL has the id of the opened entry', async () => {
  await page.getByRole('navigation').getByRole('link', { name: 'POST Add an animal' }).click()
  await operation('createPet').locator('form').waitFor()
  expect(await page.locator('.contents').getAttribute('open')).toBe('') // on a wide screen
  await unfold('getPet')
  expect(page.url()).toBe(`${service.origin}/docs/#getPet`)
  await page.goto(`${service.origin}/docs/#createPet`)
  await operation('createPet').getByRole('link', { name: 'NewPet' }).click()
  await page.locator('#schema-NewPet dl').waitFor()
  expect(page.url()).toContain('#schema-NewPet')
})

test('the URL of a response opens it and its operation, on the page and when the page loads', async () => {
  await page.goto(`${service.origin}/docs/#createPet-409`)
  const isShown = () => page.locator('#createPet-409 .body').isVisible()
  await expect.poll(isShown).toBe(true)
  await page.reload()
  await expect.poll(isShown).toBe(true)
  const { y = 0 } = (await page.locator('#createPet-409').boundingBox()) ?? {}
  expect(y).toBeGreaterThan(50)
  expect(y).toBeLessThan(desktop.height)
})

test('the contents mark the part that is read', async () => {
  const marked = page.locator('nav [aria-current=true]')
  expect(await marked.allInnerTexts()).toEqual(['Introduction'])
  for (const name of ['Errors', 'Paging']) {
    await page.getByRole('navigation').getByRole('link', { name }).click()
    await expect.poll(() => marked.allInnerTexts()).toEqual([name])
  }
})

const run = promisify(execFile)
const programs = {
  curl: (code: string) => run('sh', ['-c', code], environment()),
  'Node.js': (code: string) =>
    run(process.execPath, ['--input-type=module', '-e', code], environment()),
  Python: (code: string) => run('python3', ['-c', code], environment()),
}
const environment = () => ({ env: { PATH: process.env.PATH, API_KEY: service.key } })

test.each(Object.keys(programs) as (keyof typeof programs)[])(
  'the sample for %s makes the call of the form',
  async (language) => {
    const name = `It's "${language}" \\ $HOME`
    await unfold('createPet')
    const form = operation('createPet')
    await form.getByLabel('Idempotency-Key').fill(`"${language}"`)
    await form
      .getByLabel('Body')
      .fill(`{\n  "name": ${JSON.stringify(name)},\n "categoryId": 9223372036854775807}`)
    await form.getByRole('radio', { name: language }).check()
    const { stdout } = await programs[language](await sampleOf('createPet').innerText())
    expect(stdout).toContain('9223372036854775807')
    await unfold('listPets')
    await operation('listPets').getByLabel('status').selectOption('available')
    await operation('listPets').getByLabel('limit').fill('100')
    const listed = await programs[language](await sampleOf('listPets').innerText())
    expect(listed.stdout).toContain('9223372036854775807')
    const { body } = await service.rest('GET', '/pets?limit=100')
    expect(body).toContainEqual(expect.objectContaining({ name, categoryId: 2n ** 63n - 1n }))
  },
)

test('the samples have exactly this code', async () => {
  await unfold('createPet')
  const form = operation('createPet')
  await enterKey(service.key) // no sample contains the key
  await form.getByLabel('Idempotency-Key').fill(`"it's"`)
  await form.getByLabel('Body').fill('@it\'s {"name": 1}')
  const url = `${service.origin}/v1/pets`
  expect(await sampleOf('createPet').innerText()).toBe(String.raw`curl -i '${url}' \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Idempotency-Key: "it'\''s"' \
  -H 'Content-Type: application/json' \
  --data-raw '@it'\''s {"name": 1}'`)
  await form.getByRole('radio', { name: 'Node.js' }).check()
  expect(
    await sampleOf('createPet').innerText(),
  ).toBe(String.raw`// Node.js, as a module: a file that ends in .mjs
const response = await fetch("${url}", {
  method: "POST",
  headers: {
    Authorization: ${'`Bearer $'}{process.env.API_KEY}${'`'},
    "Idempotency-Key": "\"it's\"",
    "Content-Type": "application/json",
  },
  body: "@it's {\"name\": 1}",
})
console.log(response.status, await response.text()) // json() would round great ids`)
  await form.getByRole('radio', { name: 'Python' }).check()
  expect(await sampleOf('createPet').innerText()).toBe(String.raw`import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    "${url}",
    method="POST",
    headers={
        "Authorization": "Bearer " + os.environ["API_KEY"],
        "Idempotency-Key": "\"it's\"",
        "Content-Type": "application/json",
    },
    data="@it's {\"name\": 1}".encode(),
)
try:
    response = urlopen(request)
except HTTPError as error:
    response = error  # an answer, too
with response:
    print(response.status, response.read().decode())`)
  // JSON is written as an object of the language.
  await form
    .getByLabel('Body')
    .fill('{\n  "name": "\\/ true \u{1F420}",\n  "gone": [true, false, null, 1.5]\n}')
  expect(await sampleOf('createPet').innerText()).toContain(`
    data=json.dumps({
      "name": "/ true \u{1F420}",
      "gone": [True, False, None, 1.5]
    }).encode(),
)`)
  await form.getByRole('radio', { name: 'Node.js' }).check()
  expect(await sampleOf('createPet').innerText()).toContain(`
  body: JSON.stringify({
    "name": "\\/ true \u{1F420}",
    "gone": [true, false, null, 1.5]
  }),
})`)
  // A number that the language would round, or the name __proto__, requires a string instead.
  for (const body of ['{"id":9007199254740993}', '{"id":7.0}', '{"__proto__":7}']) {
    await form.getByLabel('Body').fill(body)
    expect(await sampleOf('createPet').innerText()).toContain(`  body: ${JSON.stringify(body)},`)
  }
  await form.getByRole('radio', { name: 'Python' }).check()
  // All forms share the language. Empty fields are omitted, and values are escaped.
  await unfold('getPet')
  await operation('getPet').getByLabel('petId').fill('a/b?c#ä')
  expect(await sampleOf('getPet').innerText()).toContain(`    "${url}/a%2Fb%3Fc%23%C3%A4",
    method="GET",
    headers={
        "Authorization": "Bearer " + os.environ["API_KEY"],
    },
)`)
  await operation('getPet').getByRole('radio', { name: 'curl' }).check()
  expect(await sampleOf('getPet').innerText()).toBe(String.raw`curl -i '${url}/a%2Fb%3Fc%23%C3%A4' \
  -H "Authorization: Bearer $API_KEY"`)
  await unfold('listPets')
  await operation('listPets').getByLabel('status').selectOption('sold')
  expect(await sampleOf('listPets').innerText()).toContain(`'${url}?status=sold'`)
})

test('a response that is not JSON or is empty is shown unchanged, and each status class has its color', async () => {
  await unfold('listPets')
  const shown = answerOf('listPets').locator('pre').first()
  const colours = new Set<unknown>()
  const colour = () => {
    const line = "document.querySelector('#listPets .answer > [role=status]')"
    return page.evaluate(`getComputedStyle(${line}).color`)
  }
  for (const [status, body] of [
    [200, '<h1>A page 1.0</h1>'],
    [200, '{"id":1.00,"more":[]}'],
    [404, ''],
    [502, 'bad gateway'],
  ] as const) {
    await page.route('**/v1/pets', (route) => route.fulfill({ status, body }), { times: 1 })
    await operation('listPets').getByRole('button', { name: 'Send' }).click()
    await answerOf('listPets').getByText(`${status} `).waitFor()
    const pretty = body.startsWith('{') ? '{\n  "id": 1.00,\n  "more": []\n}' : body
    if (body) expect(await shown.innerText()).toBe(pretty)
    expect(await shown.isVisible()).toBe(body !== '')
    expect(await answerOf('listPets').getByRole('button', { name: 'Copy' }).isVisible()).toBe(
      body !== '',
    )
    colours.add(await colour())
  }
  expect(colours.size).toBe(3)
  // After a failed request the form can be sent again.
  await page.route('**/v1/pets', (route) => route.abort(), { times: 1 })
  await operation('listPets').getByRole('button', { name: 'Send' }).click()
  await answerOf('listPets').getByText('There was no answer: Failed to fetch').waitFor()
  expect(await colour()).toBe([...colours].at(-1)) // that of 5xx
  await enterKey(service.key)
  expect((await send('listPets')).status).toBe('200')
  consoleErrors.splice(0) // lines of the browser about the failures
})

test('the copy button copies the shown sample and confirms it for two seconds', async () => {
  await unfold('listPets')
  await page.clock.install()
  await page.evaluate('navigator.clipboard.writeText = async (text) => void (window.copied = text)')
  const copy = operation('listPets').locator('.samples .copy')
  await copy.click()
  await expect.poll(() => copy.innerText()).toBe('Copied')
  expect(await page.evaluate('window.copied')).toBe(await sampleOf('listPets').innerText())
  await page.clock.runFor(2_100)
  expect(await copy.innerText()).toBe('Copy')
})

test('a link opens an entry that the search has hidden, and one that the URL has already', async () => {
  const search = page.getByRole('searchbox', { name: 'Search' })
  await search.fill('idempotency post')
  // Headings without matches are hidden, too.
  expect(await page.locator('h2:visible > span').allInnerTexts()).toEqual(['Pets', 'Guides'])
  const link = operation('createPet').getByRole('link', { name: 'NewPet' })
  await link.click()
  await page.locator('#schema-NewPet dl').waitFor()
  expect(await search.inputValue()).toBe('')
  expect((await page.locator('h2:visible').allInnerTexts()).length).toBeGreaterThan(3)
  await page.locator('#schema-NewPet summary').click()
  expect(await page.locator('#schema-NewPet dl').isVisible()).toBe(false)
  await unfold('createPet')
  await page.evaluate("history.replaceState(null, '', '#schema-NewPet')")
  await link.click()
  await page.locator('#schema-NewPet dl').waitFor()
})

test('the key is a password field, and all fields have autocomplete off', async () => {
  for (const field of await page
    .locator('form :is(input:not([type=radio], [type=checkbox]), textarea)')
    .all()) {
    expect(await field.getAttribute('autocomplete')).toBe('off')
    const isKey = (await field.getAttribute('id')) === 'key'
    const type = await field.getAttribute('type')
    expect(type === 'password').toBe(isKey)
  }
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
})

test('without JavaScript the page has the whole documentation', async () => {
  page = await newPage({ javaScriptEnabled: false })
  await page.goto(service.origin)
  await unfold('createPet')
  const text = await operation('createPet').innerText()
  for (const part of ['Idempotency-Key', 'categoryId', 'integer (int64)', '201']) {
    expect(text).toContain(part)
  }
  expect(text).not.toContain('Try it out')
  expect(await page.locator('main').innerText()).toContain('environment variable API_KEY')
  expect(await page.getByRole('searchbox').isVisible()).toBe(false)
})

test('an operation shows one line per error', async () => {
  await unfold('createPet')
  const text = (await operation('createPet').innerText()).replaceAll(/\s+/g, ' ')
  expect(text).toContain(
    '422 UNPROCESSABLE_CONTENT The Idempotency-Key was used for another request',
  )
})

test('a form shows its target server, and warns of writes', async () => {
  expect(await page.locator('.facts').innerText()).toContain(
    `This page sends to\n${service.origin}/v1`,
  )
  await unfold('createPet')
  await unfold('listPets')
  const target = `Sends to ${service.origin}/v1`
  await operation('createPet').getByText(`${target}: this changes real data`).waitFor()
  await operation('listPets').getByText(target, { exact: true }).waitFor()
})

test('a form links to the field for the key, and the header does not cover its label', async () => {
  await operation('listPets').getByRole('link', { name: 'API key' }).click()
  expect(await page.evaluate('document.activeElement.id')).toBe('key')
  const label = await page.locator('label[for=key]').boundingBox()
  expect(label?.y).toBeGreaterThan(56)
})

test('the list of servers marks the one of the page', async () => {
  const html = await (await fetch(`${service.origin}/docs/`)).text()
  const body = html
    .replace(service.baseUrl, `${service.origin}/v1`)
    .replace('data-api="../v1"', 'data-api="../v1/"')
  await page.route('**/docs/', (route) => route.fulfill({ body, contentType: 'text/html' }))
  await page.reload()
  const facts = page.locator('.facts')
  await facts.getByText('This server').waitFor()
  expect(await facts.innerText()).toContain(`This server\n${service.origin}/v1`)
  expect(await facts.innerText()).not.toContain('This page sends to')
  expect(await sampleOf('listPets').innerText()).toContain(`'${service.origin}/v1/pets'`)
})

test('a button requests the next page', async () => {
  for (const name of ['One', 'Two']) {
    await service.rest('POST', '/pets', { body: { name, categoryId: 1 } })
  }
  const { body } = await service.rest('GET', '/pets?limit=2')
  await unfold('listPets')
  await enterKey(service.key)
  await operation('listPets').getByLabel('limit').fill('1')
  const [first, second] = body as { id: bigint }[] // the output of listPets
  expect((await send('listPets')).body).toContain(`"id": ${first?.id},`)
  const next = operation('listPets').getByRole('button', { name: 'Next page' })
  const edge = async (place: typeof next) => (await place.boundingBox())?.x
  expect(await edge(next)).toBe(await edge(answerOf('listPets').locator('.block').first()))
  await next.click()
  expect(await page.evaluate('document.activeElement.type')).toBe('submit')
  await answerOf('listPets').getByText(`"id": ${second?.id},`).waitFor()
  expect(await sampleOf('listPets').innerText()).toContain(`cursor=${first?.id}`)
  expect(await operation('listPets').getByLabel('cursor').inputValue()).toBe(String(first?.id))
  await operation('listPets').getByLabel('limit').fill('100')
  await send('listPets')
  expect(await operation('listPets').getByRole('button', { name: 'Next page' }).isVisible()).toBe(
    false,
  )
})

test('the next page is that of rel="next", and changes only fields of the form', async () => {
  const link = '</v1/pets?cursor=1>; rel="successor-version", <?cursor=7&other=1>; rel="next"'
  await page.route(/\/v1\/pets/, (route) => route.fulfill({ body: '[]', headers: { link } }))
  await send('listPets')
  const next = page.waitForResponse(/\/v1\/pets/)
  await operation('listPets').getByRole('button', { name: 'Next page' }).click()
  expect((await next).url()).toBe(`${service.origin}/v1/pets?cursor=7`)
})

test('the response is scrolled into view', async () => {
  await enterKey(service.key)
  const button = operation('listPets').getByRole('button', { name: 'Send' })
  await page.evaluate("document.querySelector('#listPets [type=submit]').scrollIntoView(false)")
  await button.focus()
  await page.keyboard.press('Enter')
  const answer = answerOf('listPets')
  await answer.getByText(' ms').waitFor()
  const { y = 0, height = 0 } = (await answer.boundingBox()) ?? {}
  expect(y).toBeGreaterThan(50) // below the header
  expect(y + Math.min(height, 500)).toBeLessThan(desktop.height)
})

test('during a request the previous response is hidden and the form is busy', async () => {
  await create('{"name": "Rex", "categoryId": 3}')
  const answer = answerOf('createPet')
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/v1/pets', async (route) => {
    await held
    await route.continue()
  })
  const button = operation('createPet').getByRole('button', { name: 'Send' })
  await button.click()
  expect(await answer.innerText()).toBe('Sending …')
  expect(await button.getAttribute('aria-busy')).toBe('true')
  expect(await barriers(page, 'light')).toEqual([])
  release()
  await answer.getByText('201').waitFor()
  expect(await button.getAttribute('aria-busy')).toBe('false')
})

test('without a reason phrase (HTTP/2) the description of the status is shown, and the headers of the document are first', async () => {
  await page.evaluate("Object.defineProperty(Response.prototype, 'statusText', { value: '' })")
  await create('{"name": "Rex", "categoryId": 3}')
  await answerOf('createPet').getByText('201 Added').waitFor()
  await answerOf('createPet').locator('summary').click()
  const headers = await answerOf('createPet').locator('pre').last().innerText()
  expect(headers.split('\n').slice(0, 2).join()).toMatch(/^location: .*,x-request-id: /)
})

test('on a phone a link scrolls to the form, and one of the contents folds them up', async () => {
  await open(phone)
  const contents = page.locator('.contents')
  await contents.locator('summary').click()
  await contents.getByRole('link', { name: 'Errors' }).click()
  expect(await contents.getAttribute('open')).toBeNull()
  await unfold('createPet')
  await operation('createPet').getByRole('link', { name: 'Try it out' }).click()
  const form = operation('createPet').locator('form')
  await expect.poll(async () => (await form.boundingBox())?.y).toBeLessThan(phone.height / 2)
  // On a wide screen the contents are always there.
  await page.setViewportSize(desktop)
  await expect.poll(() => contents.getAttribute('open')).toBe('')
  await page.setViewportSize(phone)
  await expect.poll(() => contents.getAttribute('open')).toBeNull()
})

test('the page reports a failure to copy', async () => {
  await unfold('listPets')
  await page.evaluate(
    "navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'))",
  )
  await operation('listPets').locator('.samples .copy').click()
  await page.getByText('The browser refuses').waitFor()
  // Without HTTPS there is no clipboard at all.
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
  await page.locator('.start .copy').first().click()
  await page.locator('.start').getByText('The browser refuses').waitFor()
})

test('the sample of an empty form uses the example value and runs', async () => {
  await unfold('getPet')
  const form = operation('getPet')
  expect(await sampleOf('getPet').innerText()).toContain(`${service.origin}/v1/pets/42'`)
  await form.getByLabel('petId').fill('9223372036854775807') // does not exist
  for (const [language, run] of Object.entries(programs)) {
    await form.getByRole('radio', { name: language }).check()
    const { stdout } = await run(await sampleOf('getPet').innerText())
    expect(stdout, language).toMatch(/\b404\b/)
    expect(stdout, language).toContain('"code":"NOT_FOUND"')
  }
})

test('getPet is struck through', async () => {
  const style = await page.evaluate(
    "getComputedStyle(document.querySelector('#getPet summary s')).textDecorationLine",
  )
  expect(style).toBe('line-through')
})

test('on a wide screen the sample and its response are visible without scrolling, and are sticky', async () => {
  await open({ width: 1440, height: 900 })
  const inView = async (selector: string) => {
    const box = await page.locator(selector).first().boundingBox()
    return box !== null && box.y >= 0 && box.y + box.height <= 900 && box.x > 720
  }
  expect(await inView('.start [data-sample-of] pre')).toBe(true)
  expect(await inView('.start .stays > .block pre')).toBe(true)
  expect(await operation('listPets').getAttribute('open')).toBe('')
  await page.locator('#listPets .responses').scrollIntoViewIfNeeded()
  await page.locator('#listPets-503').scrollIntoViewIfNeeded()
  expect(await inView('#listPets .samples pre')).toBe(true)
  expect(await inView('#listPets .panel pre')).toBe(true)
})

test('sticky code that is higher than the viewport can be scrolled to both ends', async () => {
  await open({ width: 1440, height: 640 })
  await unfold('createPet')
  await operation('createPet').getByRole('radio', { name: 'Python' }).check()
  const isInView = async (selector: string) => {
    const box = await operation('createPet').locator(selector).first().boundingBox()
    return box !== null && box.y >= 56 && box.y + box.height <= 640
  }
  await operation('createPet').evaluate((entry) => entry.scrollIntoView())
  await page.mouse.move(500, 400)
  await page.mouse.wheel(0, 700)
  await expect.poll(() => isInView('.panel pre')).toBe(true)
  await page.mouse.wheel(0, -500)
  await expect.poll(() => isInView('.samples .tabs')).toBe(true)
})

test('each status has a tab with an example of its response', async () => {
  await unfold('createPet')
  const shown = operation('createPet').locator('.panel pre:visible')
  expect(await shown.allInnerTexts()).toEqual([expect.stringContaining('"id": 42')])
  await operation('createPet').getByText('400', { exact: true }).first().click()
  expect(await shown.count()).toBe(2)
  expect((await shown.allInnerTexts()).join()).toMatch(/BAD_REQUEST[\s\S]*PARSE_ERROR/)
  // Opening a response selects its example.
  await page.locator('#createPet-422 > summary').click()
  expect(await shown.allInnerTexts()).toEqual([expect.stringContaining('UNPROCESSABLE_CONTENT')])
  const link = operation('createPet').getByRole('link', { name: 'Link to 409 of createPet' })
  await link.click()
  expect(page.url()).toContain('#createPet-409')
  await expect.poll(() => page.locator('#createPet-409').getAttribute('open')).toBe('')
})

test('each of 24 statuses has a tab that shows its example', async () => {
  const statuses = Array.from({ length: 24 }, (_, index) => String(400 + index))
  const responses = Object.fromEntries(statuses.map((status) => [status, { description: status }]))
  const info = { title: 'T', version: '1' }
  const many = { operationId: 'größe', responses }
  const paths = { '/one': { get: {} }, '/many': { get: many } }
  await show(JSON.stringify({ openapi: '3.1.0', info, paths }))
  await page.getByRole('navigation').getByRole('link', { name: '/many' }).click()
  await expect.poll(() => operation('größe').getAttribute('open')).toBe('')
  // No request needs a key.
  expect(await sampleOf('größe').innerText()).toBe(`curl -i '${service.origin}/v1/many'`)
  await operation('größe').getByRole('radio', { name: 'Node.js' }).check()
  expect(await sampleOf('größe').innerText()).toContain('{\n  method: "GET",\n})')
  for (const status of statuses) {
    await operation('größe').locator('.examples label').getByText(status).click()
    const shown = await operation('größe').locator('.panel:visible').allInnerTexts()
    expect(shown).toEqual([expect.stringContaining(status)])
  }
})

test('the key is kept for the tab only if its checkbox is checked', async () => {
  const field = page.getByLabel('API key', { exact: true })
  await enterKey('secret')
  await page.reload()
  await page.locator('#listPets form').waitFor()
  expect(await field.inputValue()).toBe('')
  await enterKey('secret')
  await page.getByLabel('Keep it in this tab').check()
  await page.reload()
  await page.locator('#listPets form').waitFor()
  expect(await field.inputValue()).toBe('secret')
  expect(await page.getByLabel('Keep it in this tab').isChecked()).toBe(true)
  await operation('listPets').getByText('With your API key').waitFor()
  expect(await sampleOf('listPets').innerText()).not.toContain('secret')
  await enterKey('')
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  await operation('listPets').getByText('Without an API key').waitFor()
  await enterKey('secret')
  await field.press('Enter') // sends nothing, and keeps the page
  expect(await page.evaluate('sessionStorage.length')).toBe(1)
  await page.getByLabel('Write it into the samples').check()
  expect(await sampleOf('listPets').innerText()).toContain("'Authorization: Bearer secret'")
  await operation('listPets').getByRole('radio', { name: 'TypeScript' }).check()
  expect(await sampleOf('listPets').innerText()).toContain("apiKey: 'secret'")
  await page.getByLabel('Keep it in this tab').uncheck()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
})

test('the page works in a browser that stores nothing', async () => {
  page = await newPage()
  const denied = "{ get() { throw new DOMException('', 'SecurityError') } }"
  await page.addInitScript(`Object.defineProperty(window, 'sessionStorage', ${denied})`)
  await page.goto(service.origin)
  await enterKey('secret')
  await page.getByLabel('Keep it in this tab').check()
  await page.getByLabel('Write it into the samples').check()
  expect(await sampleOf('listPets').innerText()).toContain("'Authorization: Bearer secret'")
})

test('a block of more than 24 lines, of 60 characters each, is shortened', async () => {
  let body = ''
  await page.route('**/v1/pets', (route) => route.fulfill({ body }))
  const more = answerOf('listPets').getByRole('button', { name: 'Show all' })
  for (const [text, count] of [
    ['x\n'.repeat(23), 0],
    ['x\n'.repeat(24), 1],
    ['x'.repeat(24 * 60), 0],
    ['x'.repeat(24 * 60 + 1), 1],
  ] as const) {
    body = text
    await send('listPets')
    expect(await answerOf('listPets').locator('pre').first().textContent()).toBe(text)
    expect(await more.count(), `${text.length}`).toBe(count)
  }
})

test('code has the colors of its fields, texts, numbers, words and notes', async () => {
  const colored = async (selector: string) =>
    await page.evaluate(`Object.fromEntries([...CSS.highlights].map(([kind, ranges]) => [
      kind,
      [...ranges]
        .filter(({ startContainer }) => startContainer.parentElement.matches('${selector}'))
        .map(({ startContainer, startOffset, endOffset }) =>
          startContainer.data.slice(startOffset, endOffset)),
    ]))`)
  const none = { field: [], text: [], number: [], word: [], note: [], hit: [] }
  expect(await colored('.start .stays > .block pre')).toEqual({
    ...none,
    field: ['"id"', '"name"', '"categoryId"', '"status"'],
    text: ['"Rex"', '"available"'],
    number: ['42', '3'],
  })
  const sample = '.start [data-sample-of] pre'
  const url = `${service.origin}/v1/pets`
  expect(await colored(sample)).toEqual({
    ...none,
    text: [`'${url}'`, '"Authorization: Bearer $API_KEY"'],
    word: ['curl', '-i', '-H'],
  })
  await page.locator('.start').getByRole('radio', { name: 'Node.js' }).check()
  expect(await colored(sample)).toEqual({
    ...none,
    text: [`"${url}"`, '"GET"', `\`Bearer \${process.env.API_KEY}\``],
    word: ['const', 'await', 'console', 'await'],
    note: ['// Node.js, as a module: a file that ends in .mjs', '// json() would round great ids'],
  })
})

test('a long response is shortened, a button shows all of it, and the page scrolls over it', async () => {
  const list = Array.from({ length: 100 }, (_, id) => ({ id, name: 'Rex', status: 'sold' }))
  const body = JSON.stringify(list)
  await page.route('**/v1/pets', (route) =>
    route.fulfill({ body, contentType: 'application/json' }),
  )
  await send('listPets')
  const block = answerOf('listPets').locator('.block').first()
  const height = async () => (await block.boundingBox())?.height ?? 0
  expect(await height()).toBeLessThan(600)
  await block.hover()
  const before = Number(await page.evaluate('scrollY'))
  await page.mouse.wheel(0, 300)
  await expect.poll(() => page.evaluate('scrollY')).toBe(before + 300)
  await block.getByRole('button', { name: 'Show all', expanded: false }).click()
  expect(await height()).toBeGreaterThan(5_000)
  expect(await block.locator('pre').innerText()).toContain('"id": 99')
  await block.getByRole('button', { name: 'Show less', expanded: true }).click()
  expect(await height()).toBeLessThan(600)
  expect((await block.boundingBox())?.y).toBeGreaterThan(-1) // in view
  await send('listPets')
  expect(await block.getByRole('button', { name: 'Show all' }).count()).toBe(1)
})

test('a sample is written anew only if it changes, and its colors replace the earlier ones', async () => {
  await unfold('createPet')
  await operation('createPet').getByLabel('Body').fill('\n'.repeat(30))
  await operation('createPet').locator('.samples').getByText('Show all').click()
  await unfold('listPets')
  const limit = operation('listPets').getByLabel('limit')
  const colors = () =>
    page.evaluate('[...CSS.highlights.values()].reduce((sum, { size }) => sum + size, 0)')
  await limit.fill('5')
  const before = await colors()
  await limit.fill('7')
  expect(await colors()).toBe(before)
  expect(await operation('createPet').locator('.samples').getByText('Show less').count()).toBe(1)
})

test('search finds headings, guides and words with the same stem, and highlights them', async () => {
  const search = page.getByRole('searchbox', { name: 'Search' })
  const ids = () =>
    page.evaluate(
      "[...document.querySelectorAll('[data-entry]:not([hidden])')].map(({ id }) => id || 'authentication')",
    )
  const marks = () => page.evaluate("CSS.highlights.get('hit').size")
  for (const [words, id] of [
    ['authenticate', 'authentication'],
    ['pagination', 'guide-paging'],
    ['deprecated', 'guide-deprecation'],
    ['idempotent', 'guide-idempotency'],
    ['NOT_FOUND', 'guide-errors'],
    ['int64)', 'getPet'],
  ] as const) {
    await search.fill(words)
    expect(await ids(), words).toContain(id)
    expect(await marks(), words).toBeGreaterThan(0)
    const isSeen = `[...CSS.highlights.get('hit')].some((hit) => {
      const { top, bottom, height } = hit.getBoundingClientRect()
      return height > 0 && top >= 0 && bottom <= innerHeight
    })`
    expect(await page.evaluate(isSeen), words).toBe(true)
  }
  await search.fill('')
  expect(await marks()).toBe(0)
  await search.fill('pagination')
  await search.press('Enter')
  expect(await marks()).toBeGreaterThan(0)
  // The highlights end at the next link.
  await page.getByRole('navigation').getByRole('link', { name: 'Errors' }).click()
  expect(await marks()).toBe(0)
})

test('the best match of a search is in view, and Enter opens it', async () => {
  const search = page.getByRole('searchbox', { name: 'Search' })
  for (const [words, id] of [
    ['pagination', 'guide-paging'],
    ['how to page', 'guide-paging'],
    ['errors', 'guide-errors'],
    ['Retry-After', 'header-Retry-After'],
    ['limit', 'listPets'], // the name of a parameter, before an entry with the word in its title
    ['python', 'listPets'], // a language of its samples
    ['typescript', 'guide-typescript-use-the-client'],
  ] as const) {
    await search.fill(words)
    const isSeen = `[...CSS.highlights.get('hit')].some((hit) => {
      const { top, bottom, height } = hit.getBoundingClientRect()
      const isIn = document.getElementById('${id}').contains(hit.startContainer)
      return isIn && height > 0 && top >= 56 && bottom <= innerHeight
    })`
    expect(await page.evaluate(isSeen), words).toBe(true)
    await search.press('Enter')
    expect(new URL(page.url()).hash, words).toBe(`#${id}`)
  }
})

test('Enter leaves open what the search has unfolded at its goal', async () => {
  const search = page.getByRole('searchbox', { name: 'Search' })
  await search.fill('conflict')
  await search.press('Enter')
  expect(new URL(page.url()).hash).toBe('#createPet')
  expect(await page.locator('#createPet-409').getAttribute('open')).toBe('')
})

test('/ and Control+K focus the search, and Enter opens the best match', async () => {
  await page.keyboard.press('Control+/') // of the browser
  expect(await page.evaluate('document.activeElement.id')).toBe('')
  await page.keyboard.press('/')
  await page.keyboard.insertText('pagination')
  await page.keyboard.press('Enter')
  expect(page.url()).toContain('#guide-paging')
  expect(await page.evaluate('document.activeElement.textContent')).toContain('Paging')
  const search = page.getByRole('searchbox', { name: 'Search' })
  expect(await search.inputValue()).toBe('')
  expect(await page.locator('#createPet').isVisible()).toBe(true)
  await expect
    .poll(async () => (await page.locator('#guide-paging').boundingBox())?.y)
    .toBeLessThan(200)
  await page.keyboard.press('Control+k')
  await page.keyboard.insertText('add animal')
  await page.keyboard.press('Enter')
  expect(page.url()).toContain('#createPet')
  await operation('createPet').locator('form').waitFor()
  expect(await page.evaluate('document.activeElement.localName')).toBe('summary')
  // The other key of a Mac, and the letter with CapsLock. What is there already is replaced.
  for (const [keys, text] of [
    ['Meta+k', 'first'],
    ['Control+Shift+K', 'second'],
  ] as const) {
    await page.locator('#keep').focus()
    await page.keyboard.press(keys)
    await page.keyboard.insertText(text)
    expect(await search.inputValue()).toBe(text)
  }
  await search.fill('')
  await page.locator('#keep').focus() // a checkbox takes no text
  await page.keyboard.press('/')
  expect(await page.evaluate('document.activeElement.id')).toBe('search')
  // In a field / is an ordinary character.
  await operation('createPet').getByLabel('Idempotency-Key').press('/')
  expect(await operation('createPet').getByLabel('Idempotency-Key').inputValue()).toBe('/')
})

test('an array shows the schema of its items, with indented fields', async () => {
  const pets = page.locator('#schema-Pets')
  await pets.locator('summary').first().click()
  expect(await pets.innerText()).toMatch(/array of Pet\n[\s\S]*at most 100 items[\s\S]*id/)
  const [outer, inner] = await Promise.all(
    [pets.locator('.inside'), pets.locator('.nested .name').first()].map((part) =>
      part.boundingBox(),
    ),
  )
  expect(inner?.x).toBeGreaterThan((outer?.x ?? 0) + 20)
})

test('on a phone the sample and the form are above the list of responses', async () => {
  await open(phone)
  await unfold('createPet')
  const tops = await Promise.all(
    ['.samples', '.examples', 'form', '.responses'].map(
      async (part) => (await operation('createPet').locator(part).boundingBox())?.y ?? 0,
    ),
  )
  expect(tops).toEqual(tops.toSorted((one, other) => one - other))
})

test.each([
  ['a document with rare parts', () => JSON.stringify(oddDocument), 5],
  ['the visits of the tests', visitsDocument, 9],
  ['the public document of Scalar Galaxy', galaxyDocument, 10],
])('%s: the page has no errors and no blank sections', async (_, documentOf, least) => {
  await show(documentOf())
  await page.locator('form.trial').first().waitFor({ state: 'attached' })
  await unfoldAll()
  expect(await page.locator('.operation').count()).toBeGreaterThanOrEqual(least)
  const blank =
    await page.evaluate(`[...document.querySelectorAll('section, .words, .inside, .fold')]
    .filter((part) => part.innerText.trim() === '')
    .map((part) => part.outerHTML.slice(0, 200))`)
  expect(blank).toEqual([])
  for (const viewport of [phone, desktop]) {
    await page.setViewportSize(viewport)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
  }
  expect(await barriers(page, 'light')).toEqual([])
  await page.getByRole('searchbox').fill('type')
})

test('a form sends the key in the query, in a header or as Basic, where the document says so', async () => {
  await page.route('**/v1/*', (route) => route.fulfill({ body: '' }))
  await show(JSON.stringify(oddDocument))
  await enterKey('me:secret')
  const sentBy = async (id: string) => {
    await unfold(id)
    const sent = page.waitForRequest('**/v1/*')
    await operation(id).getByRole('button', { name: 'Send' }).click()
    return await sent
  }
  await unfold('upload')
  await operation('upload').getByLabel('draft').fill('yes')
  const query = 'draft=yes&api_key=me%3Asecret'
  expect((await sentBy('upload')).url()).toBe(`${service.origin}/v1/ships?${query}`)
  const inSample = `${service.origin}/v1/ships?draft=yes&api_key=API_KEY'`
  expect(await sampleOf('upload').innerText()).toContain(inSample)
  const { authorization } = (await sentBy('referred')).headers()
  expect(authorization).toBe(`Basic ${btoa('me:secret')}`)
  expect((await sentBy('moveShips')).headers()['x-api-key']).toBe('me:secret')
  await operation('moveShips').getByRole('radio', { name: 'Node.js' }).check()
  expect(await sampleOf('moveShips').innerText()).toMatch(/^ {4}"X-Api-Key": `/m)
  // A language that only one operation has is chosen for this one.
  await operation('upload').getByRole('radio', { name: 'wget' }).check()
  expect(await sampleOf('upload').innerText()).toBe('wget …')
  expect(await sampleOf('moveShips').innerText()).toMatch(/^curl -i -X PUT /)
  expect(await operation('moveShips').getByRole('radio', { name: 'curl' }).isChecked()).toBe(true)
})

/** The example document of Scalar: https://galaxy.scalar.com */
function galaxyDocument(): string {
  const file = createRequire(import.meta.url).resolve('@scalar/galaxy/latest.json')
  return readFileSync(file, 'utf8')
}

/** The document of a resource that the service does not have. */
function visitsDocument(): string {
  const { router, tags } = visitResources
  const document = openApiDocument({ description: 'Visits.' }, operationsOf(router, tags), {
    baseUrl: 'https://visits.example/v1',
    stagingUrl: undefined,
  })
  return JSON.stringify(document)
}
