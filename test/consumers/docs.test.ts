/** The docs page in a real browser: a third party's first look. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'

const desktop = { width: 1280, height: 900 }
const phone = { width: 360, height: 740 }
/** The greatest id, which JavaScript's numbers round to 9223372036854776000. */
const big = '{"name":"Big","categoryId":9223372036854775807}'

let service: Service
let browser: Browser
let page: Page
const complaints: string[] = []
const foreign: string[] = []

beforeAll(async () => {
  service = await startService()
  browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await service.stop()
})

/** Opens the page. What breaks its policy is said in the console. */
async function open(options: BrowserContextOptions = {}): Promise<void> {
  await page?.context().close()
  page = await browser.newPage({ viewport: desktop, ...options })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${service.origin}/`)) foreign.push(url)
  })
  await page.goto(service.origin)
  await operation('listPets')
    .getByRole('form', { includeHidden: true })
    .waitFor({ state: 'attached' })
}
beforeEach(() => open())
afterEach(() => {
  expect(complaints.splice(0)).toEqual([])
  expect(foreign.splice(0)).toEqual([])
})
afterAll(() => page?.context().close())

const operation = (id: string) => page.locator(`#${id}`)
const unfold = (id: string) => operation(id).locator('summary').first().click()
const answerOf = (id: string) => operation(id).getByRole('group', { name: 'Answer' })
const sampleOf = (id: string) => operation(id).locator('.samples pre')

/** Sends an operation as it is filled in, and gives the status and the body that the page shows. */
async function send(id: string): Promise<{ status: string; body: string }> {
  await operation(id).getByRole('button', { name: 'Send' }).click()
  const answer = answerOf(id)
  await answer.waitFor()
  const status = await answer.getByRole('status').innerText()
  return { status: status.slice(0, 3), body: await answer.locator('pre').first().innerText() }
}

async function create(text: string): Promise<{ status: string; body: string }> {
  await unfold('createPet')
  await operation('createPet').getByLabel('API key').fill(service.key)
  await operation('createPet').getByLabel('Body').fill(text)
  return send('createPet')
}

/** What axe finds. */
async function violations(): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as axe.AxeResults
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

test('/ leads to it', () => {
  expect(page.url()).toBe(`${service.origin}/docs/`)
})

test('with a key: createPet, listPets', async () => {
  const made = await create('{"name": "Rex", "categoryId": 3}')
  expect(made.status).toBe('201')
  const rex = JSON.parse(made.body)
  expect(rex).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 3, status: 'available' })
  await unfold('listPets')
  await operation('listPets')
    .getByLabel('cursor')
    .fill(String(rex.id - 1))
  const listed = await send('listPets')
  expect(listed.status).toBe('200')
  expect(JSON.parse(listed.body)).toEqual([rex])
  await answerOf('listPets').getByText('Headers').click()
  expect(await answerOf('listPets').innerText()).toMatch(/x-request-id: \S+/)
})

test('the greatest id has all its digits, in the request and in the answer', async () => {
  const sent = page.waitForRequest((request) => request.method() === 'POST')
  const { status, body } = await create(big)
  expect(status).toBe('201')
  expect((await sent).postData()).toBe(big)
  expect(body).toContain('"categoryId": 9223372036854775807,')
  expect(await sampleOf('createPet').innerText()).toContain(big)
  await unfold('listPets')
  expect((await send('listPets')).body).toContain('"categoryId": 9223372036854775807,')
})

test('an error is shown as it is answered', async () => {
  const { status, body } = await create('{"name":')
  expect(status).toBe('400')
  expect(JSON.parse(body).code).toBe('PARSE_ERROR')
  expect(complaints.splice(0)).toEqual([expect.stringContaining('status of 400')]) // Chromium's own line
})

test('who clicks twice adds one animal', async () => {
  let posts = 0
  await page.route('**/v1/pets', async (route) => {
    posts++
    await first
    await route.continue()
  })
  let release = () => {}
  const first = new Promise<void>((resolve) => {
    release = resolve
  })
  await unfold('createPet')
  await operation('createPet').getByLabel('API key').fill(service.key)
  await operation('createPet').getByRole('button', { name: 'Send' }).dblclick()
  release()
  await answerOf('createPet').getByText('201').waitFor()
  expect(posts).toBe(1)
  await send('createPet')
  await expect.poll(() => posts).toBe(2)
})

test('a request that cannot be sent is no riddle', async () => {
  await page.route('**/v1/pets', (route) => route.abort())
  await unfold('listPets')
  await operation('listPets').getByRole('button', { name: 'Send' }).click()
  await answerOf('listPets').getByText('There was no answer').waitFor()
  complaints.splice(0) // the browser's own line on the request
})

test('it sends to the server that it came from, and offers no other', async () => {
  expect(await page.locator('main').innerText()).toContain('https://staging.petstore.example/v1')
  await unfold('listPets')
  await operation('listPets').getByLabel('API key').fill(service.key)
  const request = page.waitForRequest('**/v1/pets')
  await send('listPets')
  expect((await request).url()).toBe(`${service.origin}/v1/pets`)
  for (const select of await page.locator('select').all()) {
    expect(await select.innerText()).not.toContain('://')
  }
})

describe.each(Object.entries({ desktop, phone }))('on a %s', (device, viewport) => {
  test.each(['light', 'dark'] as const)('axe finds nothing in %s', async (colorScheme) => {
    await open({ viewport, colorScheme })
    await create(big)
    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    await page.locator('.answer-kind pre').first().waitFor()
    expect(await violations()).toEqual([])
    const ground = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const [red = 0] = String(ground).match(/\d+/g)?.map(Number) ?? []
    expect(red > 128).toBe(colorScheme === 'light')
  })

  test('nothing is wider than the screen, and an operation is a few screens high', async () => {
    await open({ viewport })
    await create(big)
    expect((await operation('createPet').boundingBox())?.height).toBeLessThan(
      device === 'phone' ? 2_400 : 1_200,
    )
    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
  })
})

test('with the keyboard alone', async () => {
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const focused = () =>
    page.evaluate(
      '(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()',
    )
  const tabTo = async (text: string) => {
    for (let steps = 0; steps < 30; steps++) {
      await press('Tab')
      if (String(await focused()).includes(text)) return
    }
    throw new Error(`Tab does not lead to ${text}`)
  }
  await tabTo('Add an animal')
  await press('Enter')
  await tabTo('API key')
  await page.keyboard.insertText(service.key)
  await tabTo('Body')
  await press('Control+a')
  await page.keyboard.insertText(big)
  await tabTo('Send')
  await press('Enter')
  await answerOf('createPet').getByText('201').waitFor()
  await tabTo('curl')
  await press('ArrowRight')
  expect(await sampleOf('createPet').innerText()).toContain('await fetch(')
})

test('search leaves the entries that have all the words', async () => {
  const visible = async () => {
    const entries = await page.locator('.entry:visible').all()
    return Promise.all(entries.map((entry) => entry.getAttribute('id')))
  }
  const all = await visible()
  expect(all).toEqual(expect.arrayContaining(['listPets', 'createPet', 'getPet', 'schema-Pet']))
  const search = page.getByRole('searchbox', { name: 'Search' })
  await search.fill('idempotency post')
  expect(await visible()).toEqual(['createPet'])
  await page.getByText(`1 of ${all.length} found`).waitFor()
  await search.fill('unicorn')
  expect(await visible()).toEqual([])
  await search.fill('')
  expect(await visible()).toEqual(all)
})

test('a link to an operation or a schema unfolds it', async () => {
  await page.goto(`${service.origin}/docs/#createPet`)
  await operation('createPet').getByRole('link', { name: 'NewPet' }).click()
  await page.locator('#schema-NewPet dl').waitFor()
  expect(page.url()).toContain('#schema-NewPet')
})

const run = promisify(execFile)
const programs = {
  curl: (code: string) => run('sh', ['-c', code], environment()),
  JavaScript: (code: string) =>
    run(process.execPath, ['--input-type=module', '-e', code], environment()),
  Python: (code: string) => run('python3', ['-c', code], environment()),
}
const environment = () => ({ env: { PATH: process.env.PATH, API_KEY: service.key } })

test.each(Object.keys(programs) as (keyof typeof programs)[])(
  'the sample for %s makes the call that the form describes',
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

test('without scripts, too, it says everything', async () => {
  await open({ javaScriptEnabled: false })
  await unfold('createPet')
  const text = await operation('createPet').innerText()
  for (const part of ['Idempotency-Key', 'categoryId', 'integer (int64)', '201']) {
    expect(text).toContain(part)
  }
  expect(text).not.toContain('Try it out')
})

test('getPet is struck through, and says until when it is there', async () => {
  const style = await page.evaluate(
    "getComputedStyle(document.querySelector('#getPet summary s')).textDecorationLine",
  )
  expect(style).toBe('line-through')
  expect(await operation('getPet').innerText()).toContain('5 December 2030')
})

test('a file that is not one of the page is 404', async () => {
  for (const file of ['mount.ts', 'page.ts', 'index.html', '../app.ts', '%2e%2e/app.ts']) {
    const { status } = await fetch(`${service.origin}/docs/${file}`)
    expect(status, file).toBe(404)
  }
})
