/** The example storefront in a real browser, from another origin and even another host than the service. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import express from 'express'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { barriers, setFontSize, smallest, startBrowser, tooWide } from '../support/browser.ts'
import { newFolder } from '../support/database.ts'
import { storePets } from '../support/pets.ts'
import { keys, serviceForFile } from '../support/service.ts'

const ANIMALS = 110
/** The number of animals that the catalogue shows before "Show more". */
const UNASKED = 96
/** The number of animals that it searches before "Look further". */
const LOOKED_THROUGH = 960
const statuses = ['available', 'pending', 'sold'] as const

const folder = newFolder(afterAll)
let policy = ''
const site = express()
  .use(express.static(folder, { setHeaders: (res) => res.set('Content-Security-Policy', policy) }))
  .listen(0, '127.0.0.1')
await once(site, 'listening')
const address = `http://localhost:${(site.address() as AddressInfo).port}` // the address of a TCP server
const { origin, key, sql, databaseUrl } = await serviceForFile({ CORS_ORIGINS: address })
// The policy that the storefront's README names.
policy = `default-src 'self'; connect-src ${origin}`
const visitors = await keys.create(databaseUrl, 'visitors', undefined, true)

execFileSync(path.resolve('node_modules/.bin/vite'), ['build', '--outDir', folder], {
  cwd: 'examples/storefront',
  stdio: 'pipe',
  env: {
    ...process.env,
    NODE_ENV: 'production',
    VITE_PETSTORE_URL: `${origin}/trpc`,
    VITE_PETSTORE_KEY: visitors.key,
  },
})

test('the built shop may be served below a path', () => {
  const page = readFileSync(path.join(folder, 'index.html'), 'utf8')
  const files = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, file]) => file)
  expect(files.length).toBeGreaterThan(1)
  for (const file of files) expect(file).toMatch(/^\.\//)
})

const browser = await startBrowser()
afterAll(async () => {
  await browser.close()
  site.close()
})

const computer: BrowserContextOptions = { viewport: { width: 1280, height: 720 } }
const small = { width: 360, height: 640 }
const phone: BrowserContextOptions = { viewport: small, isMobile: true, hasTouch: true }

let page: Page
const problems: string[] = []
beforeEach(async () => {
  await sql('delete from pets')
  await addAnimals(ANIMALS)
  await open(computer)
})
afterEach(async () => {
  await page.context().close()
  expect(problems.splice(0)).toEqual([])
})

/** Opens a page, which replaces the one before. */
async function open(device: BrowserContextOptions): Promise<void> {
  await page?.context().close()
  page = await browser.newPage(device)
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) problems.push(message.text())
  })
}

/** Stores animals with numbered names and alternating statuses. */
async function addAnimals(count: number): Promise<void> {
  const pets = Array.from({ length: count }, (_, index) => ({
    name: `Animal ${index + 1}`,
    categoryId: BigInt((index % 5) + 1),
    status: statuses[index % 3] ?? 'available',
  }))
  await storePets(sql, pets)
}

/** Opens a place of the shop, by default the catalogue with all animals. */
const visit = (place = '?status=all') => page.goto(`${address}/#/${place}`)

/** Opens the catalogue with all animals as staff. */
async function enter(apiKey = key): Promise<void> {
  await visit('staff?status=all')
  await page.getByLabel('Your key').fill(apiKey)
  await page.keyboard.press('Enter')
}

/** Enters an animal into the form, and submits it. */
async function add(name: string): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Category').selectOption('Small pet')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByRole('status').getByText(`${name} has been added.`).waitFor()
}

const shown = (text: string | RegExp) => page.getByText(text, { exact: true }).first().waitFor()
const follow = (name: string) => page.getByRole('link', { name }).first().click()
const heading = (name: string) => page.getByRole('heading', { name }).waitFor()
const chosen = () => page.getByRole('radio', { checked: true }).getAttribute('value')

/** Scrolls until this number of cards is there. */
async function scrollTo(count: number): Promise<void> {
  while ((await page.getByRole('listitem').count()) < count) {
    await page.mouse.wheel(0, 4000)
    await page.waitForFunction('new Promise(requestAnimationFrame)')
  }
}

test('a visitor scrolls through the animals, opens one, and comes back to the same place', async () => {
  await page.goto(address)
  await shown('Animal 1')
  expect(await chosen()).toBe('available')
  expect(await page.getByText('Animal 2', { exact: true }).count()).toBe(0)
  await page.getByRole('radio', { name: 'All' }).check()
  await scrollTo(UNASKED)
  // The list loads no more by itself, so that its footer can be reached.
  await page.getByRole('button', { name: 'Show more' }).click()
  await shown(`${ANIMALS} animals in all`)
  await scrollTo(ANIMALS)
  await follow('Animal 100')
  await heading('Animal 100')
  expect(await page.evaluate('scrollY')).toBe(0)
  await page.goBack()
  await page.waitForFunction('scrollY > 2000')
})

test('a visitor searches by name and kind, and further where the first animals do not match', async () => {
  await addAnimals(LOOKED_THROUGH)
  await storePets(sql, [{ name: 'Zoë', categoryId: 3n, status: 'available' }])
  await visit()
  await page.getByLabel('Name').pressSequentially('zoe')
  await shown(new RegExp(`^None found among the first ${LOOKED_THROUGH} animals`))
  await page.getByRole('button', { name: 'Look further' }).click()
  await shown(new RegExp(`^1 found among all ${ANIMALS + LOOKED_THROUGH + 1} animals`))
  await page.getByLabel('Kind').selectOption('Dog')
  await follow('Show every name and kind')
  await shown('Animal 2')
})

test('the page of an animal shows its status and more animals, in one request, and ids exactly', async () => {
  const [pet] = await sql("select id from pets where name = 'Animal 2'")
  const lists: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname.includes('listPets')) lists.push(pathname)
  })
  await visit(`pets/${pet?.id}?status=all`)
  await shown('Animal 2 is reserved at the moment.')
  await heading('More animals')
  expect(lists).toEqual(['/trpc/listPets,listPets'])
  const greatest = 2n ** 63n - 1n
  await sql("update pets set id = ?, category_id = ? where name = 'Animal 4'", [greatest, greatest])
  await visit(`pets/${greatest}`)
  await shown('Animal 4 is looking for a home.')
  await visit(`pets/${greatest + 1n}`)
  await shown('This address leads nowhere.')
})

test('staff add animals, and see what is wrong with a key and with a field', async () => {
  await enter('petstore_wrong')
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await page.locator('#key:focus').waitFor()
  await enter()
  await page.getByRole('radio', { name: 'Sold' }).check()
  await follow('Add an animal')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  const name = page.locator('input[name=name]:focus')
  const described = page.locator(`#${await name.getAttribute('aria-describedby')}`)
  expect(await described.innerText()).toBe('Please enter a name')
  await page.getByLabel('Availability').selectOption('Reserved')
  await add('Rex 🐕')
  const made = await sql("select category_id, status from pets where name = 'Rex 🐕'")
  expect(made).toEqual([{ category_id: 4n, status: 'pending' }])
  await follow('Add another')
  expect(await page.getByLabel('Name').inputValue()).toBe('')
  await follow('Cancel')
  await shown('Animal 3')
  expect(await chosen()).toBe('sold')
  await page.reload()
  await page.getByRole('button', { name: 'Leave' }).click()
  await shown('Animal 3')
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)
})

test('staff add an animal in a browser that stores nothing, on a page without HTTPS', async () => {
  await page.addInitScript(`
    delete Crypto.prototype.randomUUID
    Object.defineProperty(window, 'sessionStorage', {
      get() { throw new DOMException('', 'SecurityError') },
    })`)
  await enter()
  await follow('Add an animal')
  await add('Rex')
})

test('without a network every page says so, nothing is added later, and the shop recovers by itself', async () => {
  const offline = () => page.getByRole('status').getByText('cannot be reached right now').waitFor()
  const setOffline = async (isOffline: boolean) => {
    await page.context().setOffline(isOffline)
    // On a machine without a network of its own, the browser finds no change.
    await page.evaluate(`dispatchEvent(new Event('${isOffline ? 'offline' : 'online'}'))`)
  }
  await enter()
  await shown('Animal 1')
  await follow('Add an animal')
  await page.getByLabel('Name').fill('Rex')
  await page.getByLabel('Category').selectOption('Dog')
  await setOffline(true)
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByRole('alert').getByText('nothing is lost').waitFor()
  await follow('Cancel')
  await scrollTo(UNASKED / 2)
  await page.mouse.wheel(0, 4000)
  await offline()
  await page.getByRole('button', { name: 'Loading…' }).waitFor()
  await follow('Animal 7')
  await heading('Animal 7')
  await offline()
  await setOffline(false)
  await page.getByText('cannot be reached').waitFor({ state: 'hidden' })
  await page.goBack()
  await scrollTo(UNASKED)
  expect(await sql("select id from pets where name = 'Rex'")).toEqual([])
})

test('a form that is submitted again while it sends adds its animal once, and shows it', async () => {
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push(request.url())
  })
  await enter()
  const submissions = [
    () => page.evaluate('for (const _ of "123") document.forms[0].requestSubmit()'),
    () => Promise.all([...'12345'].map(() => page.keyboard.press('Enter'))),
  ]
  for (const [index, submit] of submissions.entries()) {
    await follow('Add an')
    const name = `Rex ${index}`
    await page.getByLabel('Category').selectOption('Dog')
    await page.getByLabel('Name').fill(name)
    await submit()
    await page.getByRole('status').getByText(`${name} has been added.`).waitFor()
    await heading(name)
    expect(sent.splice(0)).toHaveLength(1)
  }
})

test('a form that was cancelled leads nowhere once its animal is added, which is said', async () => {
  await enter()
  await follow('Add an animal')
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>()
  await page.route('**/trpc/createPet', async (route) => {
    await cancelled
    await route.continue()
  })
  await page.getByLabel('Name').fill('Rex')
  await page.getByLabel('Category').selectOption('Dog')
  const added = page.waitForResponse('**/trpc/createPet')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByRole('button', { name: 'Adding…' }).waitFor()
  await follow('Cancel')
  await follow('Add an animal')
  // One at a time: a second form says that the first is not done.
  await page.getByRole('button', { name: 'Adding…', disabled: true }).waitFor()
  await follow('Cancel')
  await follow('Animal 7')
  await heading('Animal 7')
  cancel()
  await (await added).finished()
  await page.getByRole('status').getByText('Rex has been added.').waitFor()
  await heading('Animal 7')
  await page.goBack()
  await page.getByRole('radio', { name: 'Sold' }).check()
  await heading('Our animals')
  expect(page.url()).toBe(`${address}/#/?status=sold`)
  expect(await page.getByText('has been added').count()).toBe(0)
  expect(await sql("select status from pets where name = 'Rex'")).toHaveLength(1)
})

test.each(Object.entries({ computer, phone }))(
  'on a %s no page has barriers',
  async (_, device) => {
    const long = 'Donaudampfschifffahrtsgesellschaftskapitän'.repeat(3)
    await sql("delete from pets where name not in ('Animal 1', 'Animal 2', 'Animal 3')")
    await sql("update pets set name = ? where name = 'Animal 2'", [long])
    await open({ ...device, reducedMotion: 'reduce' })
    const check = async () => {
      for (const scheme of ['light', 'dark'] as const)
        expect(await barriers(page, scheme), `${page.url()}, ${scheme}`).toEqual([])
      const faults = await page.evaluate(`[
      ...(document.documentElement.scrollWidth > innerWidth ? ['wider than the window'] : []),
      ...[...document.querySelectorAll('a, button, .control, .filter span')]
        .filter((place) => innerWidth < 400 && place.getBoundingClientRect().height < 44)
        .map((place) => place.outerHTML)]`)
      expect(faults).toEqual([])
    }
    await enter('petstore_wrong')
    await page.getByRole('alert').waitFor()
    await check()
    await enter()
    await follow(long)
    await heading('More animals')
    await check()
    await follow('Add an animal')
    await page.getByRole('button', { name: 'Add to the catalogue' }).click()
    await shown('Please enter a name')
    await check()
    await page.route('**/trpc/**', (route) => route.abort())
    await visit('?status=sold')
    await page.getByText('cannot be reached right now').waitFor()
    await check()
  },
)

test.each(Object.entries(smallest))(
  '%s no page is wider than the window',
  async (_, { viewport, fontSize }) => {
    const long = 'Donaudampfschifffahrtsgesellschaft'
    await sql("update pets set name = ? where name = 'Animal 2'", [long])
    await open({ viewport })
    await setFontSize(page, fontSize)
    const check = async () => {
      expect(await page.evaluate('getComputedStyle(document.documentElement).fontSize')).toBe(
        `${fontSize}px`,
      )
      expect(await tooWide(page), page.url()).toEqual([])
    }
    await enter('petstore_wrong')
    await page.getByRole('alert').waitFor()
    await check()
    await enter()
    await shown(long)
    await check()
    await follow(long)
    await heading('More animals')
    await check()
    await follow('Add an animal')
    await page.getByRole('button', { name: 'Add to the catalogue' }).click()
    await shown('Please enter a name')
    await check()
    await add(long)
    await check()
    await page.route('**/trpc/**', (route) => route.abort())
    await visit('?status=sold')
    await page.getByText('cannot be reached right now').waitFor()
    await check()
    await page.unrouteAll()
    await visit('?status=all&name=nothing')
    await page.getByRole('link', { name: 'Show every name and kind' }).waitFor()
    await check()
  },
)

test('printed, a page has its animals and contacts, in dark on light, and nothing to click', async () => {
  await open({ ...computer, colorScheme: 'dark' })
  await page.emulateMedia({ media: 'print' })
  const clickable =
    "main :is(button, input, select, .button), header a:not(.brand), [href^='#/staff']"
  for (const place of ['?status=all', `pets/${(await sql('select id from pets'))[0]?.id}`, 'add']) {
    await visit(place)
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(await page.locator(clickable).locator('visible=true').count(), place).toBe(0)
  }
  await visit()
  await shown('Animal 1')
  await shown('hello@petstore.example')
  expect(await page.evaluate('getComputedStyle(document.documentElement).color')).toBe(
    'rgb(33, 29, 21)',
  )
})

test('with forced colors the chosen filter and the focus are seen', async () => {
  await open({ ...computer, forcedColors: 'active' })
  await visit()
  await shown('Animal 1')
  const grounds = await page.evaluate(`[...document.querySelectorAll('.filter span')]
    .map((span) => getComputedStyle(span).backgroundColor)`)
  expect(new Set(grounds as string[]).size).toBe(2)
  for (let step = 0; step < 10; step++) {
    await page.keyboard.press('Tab')
    const outline = await page.evaluate(`(() => {
      const control = document.activeElement
      const seen = control.type === 'radio' ? control.nextElementSibling : control
      return getComputedStyle(seen).outlineStyle
    })()`)
    expect(outline).not.toBe('none')
  }
})
