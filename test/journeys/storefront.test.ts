/**
 * A copy of the example storefront, made as its README describes: outside this repository, with the
 * packed client, built there, and opened in a real browser from another origin than the service.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { createServer } from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { gzipSync } from 'node:zlib'
import express from 'express'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { errorShape, tooManyRequests } from '../../src/errors/problem.ts'
import { barriers, startBrowser } from '../support/browser.ts'
import { emptyProject, type Project, run } from '../support/client-package.ts'
import { newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { INSTALLATION } from '../support/installation.ts'
import { freePort } from '../support/mysql.ts'
import { countPets, storePets } from '../support/pets.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { transformer } from '../support/router.ts'
import { keys } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

const root = path.resolve(import.meta.dirname, '../..')
const ANIMALS = 110
/** The number of animals that the catalogue shows before "Show more". */
const UNASKED = 96
/** The number of animals that it searches before "Look further". */
const LOOKED_THROUGH_UNASKED = 960
const statuses = ['available', 'pending', 'sold'] as const

let shop: Project
let variables: Record<string, string>
let database: TestDatabase
let sql: Sql
let key: string
/** The read-only key of the shop, which visitors use. */
let readOnlyKey: string
let service: ServerProgram
let site: Server
let address: string
let browser: Browser

beforeAll(async () => {
  database = await newDatabase()
  key = (await keys.create(database.url, 'storefront')).key
  sql = await openSql(database.url)
  // The page has another origin and even another host, so all its requests use CORS.
  const [port, sitePort] = [await freePort(), await freePort()]
  address = `http://localhost:${sitePort}`
  variables = { PORT: String(port), DATABASE_URL: database.url, CORS_ORIGINS: address }
  service = await runServer(variables)

  shop = emptyProject()
  cpSync(path.join(root, 'examples/storefront'), shop.folder, {
    recursive: true,
    filter: (source) => !/^(node_modules|dist|\.env\.local)$/.test(path.basename(source)),
  })
  const readme = readFileSync(path.join(root, 'examples/storefront/README.md'), 'utf8')
  const [, install = ''] = /^npm install (.*)$/m.exec(readme) ?? []
  await shop.install(install.replace(/\S+\.tgz/, inject('clientPackage')).split(' '))
  const build = (apiKey: string, ...words: string[]) =>
    execFileSync('npm', ['run', 'build', '--', ...words], {
      cwd: shop.folder,
      stdio: 'pipe',
      env: {
        ...process.env,
        NODE_ENV: 'production',
        VITE_PETSTORE_URL: `${service.origin}/trpc`,
        VITE_PETSTORE_KEY: apiKey,
      },
    })
  readOnlyKey = (await keys.create(database.url, 'visitors', undefined, true)).key
  build(readOnlyKey)
  build('', '--outDir', 'dist/keyless', '--base', '/keyless/')
  build('petstore_read_revoked', '--outDir', 'dist/closed', '--base', '/closed/')
  site = express()
    .use(express.static(path.join(shop.folder, 'dist')))
    .listen(sitePort, '127.0.0.1')
  await once(site, 'listening')
  browser = await startBrowser()
}, INSTALLATION)

afterAll(async () => {
  await browser?.close()
  site?.close()
  await stop(service)
  await sql.close()
  await database.remove()
  shop.remove()
})

async function stop({ child, exited }: ServerProgram): Promise<void> {
  child.kill()
  await exited
}

const computer: BrowserContextOptions = { viewport: { width: 1280, height: 720 } }
const phone: BrowserContextOptions = {
  viewport: { width: 360, height: 640 },
  isMobile: true,
  hasTouch: true,
}

/** One page per device for all tests, because a new page takes longer than most tests. */
const kept = new Map<BrowserContextOptions, Page>()
let page: Page
const problems: string[] = []
beforeEach(async () => {
  await sql('delete from pets')
  await addAnimals(ANIMALS)
  await open(computer)
})
afterEach(async ({ task }) => {
  const device = [...kept].find(([, opened]) => opened === page)?.[0]
  if (device && task.result?.state !== 'fail') {
    await leave()
  } else {
    if (device) kept.delete(device)
    await page.context().close()
  }
  expect(problems.splice(0)).toEqual([])
})

/** Selects the page of a device. */
async function open(device: BrowserContextOptions): Promise<void> {
  page = kept.get(device) ?? (await newPage(device))
  kept.set(device, page)
}

/** Resets a page for the next test. */
async function leave(): Promise<void> {
  await page.unrouteAll()
  page.removeAllListeners('request')
  if (page.url() !== 'about:blank') await page.evaluate('sessionStorage.clear()')
  await page.goto('about:blank')
}

/** Opens a page. */
async function newPage(device: BrowserContextOptions): Promise<Page> {
  const opened = await (await browser.newContext(device)).newPage()
  opened.setDefaultTimeout(30_000)
  opened.on('pageerror', (error) => problems.push(error.message))
  return opened
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

/** Opens the catalogue as a visitor, by default with all animals. */
async function visit(filter = '?status=all'): Promise<void> {
  await page.goto(`${address}/#/${filter}`)
}

/** Opens the catalogue with all animals as staff. */
async function enter(apiKey = key): Promise<void> {
  await page.goto(`${address}/#/staff?status=all`)
  await page.getByLabel('Your key').fill(apiKey)
  await page.getByRole('button', { name: 'Enter' }).click()
}

/** Blocks all requests to the service, and returns a function that releases them. */
async function holdAnswers(): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  await page.route('**/trpc/**', async (route) => {
    await promise
    await route.continue()
  })
  return resolve
}

const cards = () => page.getByRole('listitem')

const scrollTop = () => page.evaluate('scrollY')

async function scrollToEnd(): Promise<void> {
  const end = page.getByText(/animals in all$/)
  const more = page.getByRole('button', { name: 'Show more' })
  const latest = performance.now() + 60_000
  while (!(await end.isVisible())) {
    if (performance.now() > latest) {
      const text = await page.locator('main').innerText()
      throw new Error(`The catalogue has no end after a minute: ${text.slice(-500)}`)
    }
    await page.mouse.wheel(0, 4000)
    await page.waitForTimeout(50)
    // Up to this number the next ones load without a click.
    if ((await more.isVisible()) && (await cards().count()) >= UNASKED) await more.click()
  }
}

test('the script has at most 98 kB gzipped', () => {
  const assets = path.join(shop.folder, 'dist/assets')
  const scripts = readdirSync(assets).filter((name) => name.endsWith('.js'))
  const sizes = scripts.map((name) => gzipSync(readFileSync(path.join(assets, name))).length)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(98_000)
})

test('the catalogue can be scrolled to its end', async () => {
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await scrollToEnd()
  expect(await cards().count()).toBe(ANIMALS)
  await page.getByText(`${ANIMALS} animals in all`).waitFor()
})

test('the catalogue stops loading by itself, so that its footer can be reached', async () => {
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  while ((await cards().count()) < UNASKED) {
    await page.mouse.wheel(0, 4000)
    await page.waitForTimeout(50)
  }
  let requests = 0
  page.on('request', (request) => {
    if (request.url().includes('listPets')) requests += 1
  })
  await page.mouse.wheel(0, 4000)
  await page.getByRole('link', { name: 'Staff' }).click()
  await page.getByLabel('Your key').waitFor()
  expect(requests).toBe(0)
})

test('the catalogue can be filtered by status', async () => {
  await visit()
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.getByText('Animal 3', { exact: true }).waitFor()
  await scrollToEnd()
  expect(await cards().count()).toBe(36)
  expect(await page.getByRole('listitem').filter({ hasText: 'Reserved' }).count()).toBe(0)
  expect(page.url()).toContain('status=sold')
  await page.getByText('36 sold animals in all').waitFor()

  await sql("delete from pets where status = 'pending'")
  await page.getByRole('radio', { name: 'Reserved' }).check()
  await page.getByText('No animal is reserved right now.').waitFor()
  await page.getByRole('link', { name: 'See all animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
})

test('a visitor sees the available animals without a key, and staff need a key', async () => {
  await page.goto(address)
  await page.getByText('Animal 1', { exact: true }).waitFor()
  expect(await page.getByRole('radio', { checked: true }).getAttribute('value')).toBe('available')
  expect(await page.getByText('Animal 2', { exact: true }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)

  await page.getByRole('link', { name: 'Staff' }).click()
  await page.getByRole('heading', { name: 'Staff' }).waitFor()
  await page.getByRole('link', { name: 'Our animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Staff' }).click()
  await page.getByLabel('Your key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Add an animal' }).waitFor()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Leave' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)
})

test('name and kind filter the catalogue, which loads pages until it has enough matches', async () => {
  await storePets(sql, [{ name: 'Zoë', categoryId: 3n, status: 'available' }])
  const name = page.getByLabel('Name')
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await name.pressSequentially('zoe')
  await page.getByText(`1 found among all ${ANIMALS + 1} animals`).waitFor()
  expect(await page.locator('.card .name').allInnerTexts()).toEqual(['Zoë'])
  await page.locator('#root :focus').waitFor()
  await page.getByText('Zoë').click()
  await page.getByRole('heading', { name: 'Zoë' }).waitFor()
  await page.goBack()
  await page.getByText(`1 found among all ${ANIMALS + 1} animals`).waitFor()
  expect(await name.inputValue()).toBe('zoe')

  await page.getByLabel('Kind').selectOption('Dog')
  await page.getByText(`None found among all ${ANIMALS + 1} animals.`).waitFor()
  await page.getByRole('link', { name: 'Show every name and kind' }).click()
  await page.getByText('Animal 2', { exact: true }).waitFor()
  await page.getByRole('radio', { name: 'Available' }).check()
  await page.getByLabel('Kind').selectOption('Bird')
  await page.getByText(/^8 found among all 38 available animals/).waitFor()
  await page.getByLabel('Kind').selectOption('Other pet')
  await page.getByText('None found among all 38 available animals.').waitFor()
  await page.goBack() // over both kinds
  expect(new URL(page.url()).hash).toBe('#/?status=all')
})

test('a search without matches stops after a limit and reports it', async () => {
  await addAnimals(LOOKED_THROUGH_UNASKED)
  await storePets(sql, [{ name: 'Needle', categoryId: 3n, status: 'available' }])
  await visit('?status=all&name=needle')
  await page.getByText(`None found among the first ${LOOKED_THROUGH_UNASKED} animals`).waitFor()
  await page.waitForLoadState('networkidle')
  await page.getByRole('button', { name: 'Look further' }).click()
  await page.getByText('Needle').waitFor()
  await page
    .getByText(`1 found among all ${ANIMALS + LOOKED_THROUGH_UNASKED + 1} animals`)
    .waitFor()
})

test('the Back button restores the scroll position of the catalogue', async () => {
  await visit()
  await scrollToEnd()
  await page.getByText('Animal 100', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 100' }).waitFor()
  expect(await page.title()).toBe('Animal 100 · Petstore')
  await page.locator('h1:focus').waitFor()
  expect(await scrollTop()).toBe(0)
  const requests: string[] = []
  page.on('request', (request) => requests.push(new URL(request.url()).pathname))
  await page.goBack()
  await page.waitForFunction('scrollY > 2000')
  await page.waitForLoadState('networkidle')
  // The animals were loaded a moment ago.
  expect(requests.filter((name) => name.includes('listPets'))).toEqual([])

  await page.evaluate('scrollTo(0, 0)')
  await page.getByRole('radio', { name: 'available' }).check()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByText('Animal 2', { exact: true }).waitFor({ state: 'detached' })
  await scrollToEnd()
  await page.getByText('Animal 100', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 100' }).waitFor()
  expect(await scrollTop()).toBe(0)
  await page.goBack()
  await page.waitForFunction('scrollY > 1000')

  await page.goto(`${address}/#/pets/999999999999999999`)
  await page.getByText('There is no animal with the number 999999999999999999').waitFor()
  await page.getByRole('link', { name: 'See our animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
})

test('the page of an animal has its status, the contacts of the shop, and more animals', async () => {
  const pets = await sql('select id, name from pets order by id limit 6')
  await visit()
  await page.getByText('Animal 2', { exact: true }).click()
  await page.getByText('Animal 2 is reserved at the moment.').waitFor()
  await page.getByRole('heading', { name: 'Interested?' }).waitFor()
  expect(await page.getByRole('link', { name: 'Write to us' }).getAttribute('href')).toBe(
    `mailto:hello@petstore.example?subject=Animal%202%20(no.%20${pets[1]?.id})`,
  )
  expect(await page.getByRole('link', { name: 'Call' }).getAttribute('href')).toBe('tel:+15550100')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'Copy the number' }).click()
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(String(pets[1]?.id))
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error())')
  await page.getByRole('button', { name: 'Copy the number' }).click()
  await page.getByText('Copied').waitFor({ state: 'hidden' })
  await page.getByRole('heading', { name: 'More animals' }).waitFor()
  expect(await page.locator('.more .name').allInnerTexts()).toEqual(
    pets.slice(2).map(({ name }) => name),
  )

  await page.getByText('Animal 3', { exact: true }).click()
  await page.getByText('Animal 3 has found a home.').waitFor()
  expect(await page.getByText('Copied').count()).toBe(0)
  expect(await scrollTop()).toBe(0)
  await page.getByText('Animal 4', { exact: true }).click()
  await page.getByText('Animal 4 is looking for a home.').waitFor()

  // They have the status of the filter; the last animal has none after it.
  await page.goto(`${address}/#/pets/${pets[1]?.id}?status=pending`)
  await page.getByText('Animal 5', { exact: true }).waitFor()
  expect(await page.locator('.more .status').allInnerTexts()).toEqual(Array(4).fill('Reserved'))
  await sql('delete from pets where id > ?', [pets[1]?.id])
  await page.reload()
  await page.getByText('Animal 2 is reserved at the moment.').waitFor()
  await page.waitForLoadState('networkidle')
  expect(await page.getByRole('heading', { name: 'More animals' }).count()).toBe(0)
})

test('the page of an animal shows the data of the list before the response arrives', async () => {
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.waitForLoadState('networkidle')
  const requests: string[] = []
  page.on('request', (request) => requests.push(new URL(request.url()).pathname))
  const answer = await holdAnswers()
  await page.getByText('Animal 2', { exact: true }).click()
  await page.getByText('Animal 2 is reserved at the moment.').waitFor()
  await page.getByRole('heading', { name: 'More animals' }).waitFor()
  expect(await page.locator('.more .name').allInnerTexts()).toEqual(
    [3, 4, 5, 6].map((number) => `Animal ${number}`),
  )
  await sql("update pets set status = 'sold' where name = 'Animal 2'")
  answer()
  await page.getByText('Animal 2 has found a home.').waitFor()
  expect(requests.filter((name) => name.includes('listPets'))).toEqual(['/trpc/listPets,listPets'])
})

test('the page of an animal loads all its data in one request', async () => {
  const [pet] = await sql("select id from pets where name = 'Animal 2'")
  const requests: string[] = []
  page.on('request', (request) => requests.push(new URL(request.url()).pathname))
  await visit(`pets/${pet?.id}?status=all`)
  await page.getByRole('heading', { name: 'More animals' }).waitFor()
  await page.waitForLoadState('networkidle')
  expect(requests.filter((name) => name.includes('listPets'))).toEqual(['/trpc/listPets,listPets'])
  // The page of a further animal begins with what this one shows of it.
  const answer = await holdAnswers()
  await page.getByText('Animal 3', { exact: true }).click()
  await page.getByText('Animal 3 has found a home.').waitFor()
  answer()
  await page.getByText('Animal 7', { exact: true }).waitFor()
})

test('a name of 255 characters does not break the layout', async () => {
  const name = 'Donaudampfschifffahrtsgesellschaftskapitän von und zu '.repeat(5).slice(0, 255)
  await sql("update pets set name = ? where name = 'Animal 1'", [name])
  const height = async (place: string) =>
    (await page.locator(place).first().boundingBox())?.height ?? 0
  await visit()
  await page.getByText('Animal 2', { exact: true }).waitFor()
  const [long = 0, short = 0] = await page
    .locator('.card .name')
    .evaluateAll((names) => names.slice(0, 2).map((each) => each.getBoundingClientRect().height))
  expect(long).toBeLessThan(2.1 * short)
  await page.getByText(name).click()
  await page.getByRole('heading', { name }).waitFor()
  expect(await height('h1')).toBeLessThan(400)
  expect(await height('.pet .status')).toBeLessThan(80)
  expect(await page.locator('.pet .portrait').getAttribute('style')).toContain('--coat')
})

test('animals of one category look different', async () => {
  await sql('delete from pets')
  const dogs = Array.from({ length: 6 }, (_, index) => `Dog ${index}`)
  await storePets(
    sql,
    dogs.map((name) => ({ name, categoryId: 1n, status: 'available' })),
  )
  await visit()
  const looks = new Set<string>()
  for (const name of dogs) {
    await page.goto(`${address}/#/`)
    await page.getByText(name, { exact: true }).click()
    await page.getByRole('heading', { name }).waitFor()
    looks.add((await page.locator('.pet .portrait').screenshot()).toString('base64'))
  }
  expect(looks.size).toBe(6)
})

test('a preview shows the new animal, and its picture does not change during typing', async () => {
  const preview = page.locator('.preview')
  const height = async () => (await preview.boundingBox())?.height
  const coat = () => preview.locator('.portrait').getAttribute('style')
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  const emptyHeight = await height()
  await page.getByLabel('Category').selectOption('Dog')
  await page.getByLabel('Availability').selectOption('Reserved')
  await preview.getByText('Dog').waitFor()
  await preview.getByText('Reserved').waitFor()
  expect(await height()).toBeCloseTo(emptyHeight ?? 0, 0)

  const nameless = await coat()
  await page.getByLabel('Name').pressSequentially('Rex')
  await preview.getByText('Rex').waitFor()
  expect(await coat()).toBe(nameless)
  await page.keyboard.press('Tab')
  const settled = await coat()
  expect(settled).not.toBe(nameless)
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('Rex is reserved at the moment.').waitFor()
  expect(await page.locator('.pet .portrait').getAttribute('style')).toBe(settled)
})

test('placeholders have the height of the cards', async () => {
  const height = async (card: string) => (await page.locator(card).first().boundingBox())?.height
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  const answer = await holdAnswers()
  await page.getByRole('radio', { name: 'Sold' }).check()
  await page.locator('li.skeleton').first().waitFor()
  const waiting = await height('li.skeleton')
  answer()
  await page.getByText('Animal 3', { exact: true }).waitFor()
  expect(await height('a.card')).toBeCloseTo(waiting ?? 0, 0)
})

test('an invalid field has a readable message until it is corrected', async () => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  const [name, category] = [page.getByLabel('Name'), page.getByLabel('Category')]
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('Please enter a name').waitFor()
  await page.getByText('Please choose a category').waitFor()
  expect(await name.getAttribute('aria-invalid')).toBe('true')
  const described = page.locator(`#${await name.getAttribute('aria-describedby')}`)
  expect(await described.innerText()).toBe('Please enter a name')
  await page.locator('input[name=name]:focus').waitFor()

  await page.keyboard.type('R')
  await page.getByText('Please enter a name').waitFor({ state: 'hidden' })
  await page.keyboard.type('ex')
  expect(await name.inputValue()).toBe('Rex') // the field keeps the focus
  expect(await category.getAttribute('aria-invalid')).toBe('true')
  await category.selectOption('Cat')
  await page.getByText('Please choose a category').waitFor({ state: 'hidden' })

  // Errors that only the service detects.
  await name.fill('x'.repeat(256))
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('256 of 255').waitFor()
  await page.getByText('The name must have at most 255 characters').waitFor()
  await page.locator('input[name=name]:focus').waitFor()
  await name.fill('Rex')
  await page.getByText('The name must').waitFor({ state: 'hidden' })
  await page.getByText('3 of 255').waitFor()
  expect(await countPets(sql)).toBe(ANIMALS)
})

test('an animal is added, and the confirmation is shown once', async () => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Rex 🐕')
  await page.getByLabel('Category').selectOption('Small pet')
  await page.getByLabel('Availability').selectOption('Reserved')
  await page.getByLabel('Name').press('Enter')
  await page.getByRole('heading', { name: 'Rex 🐕' }).waitFor()
  await page.getByRole('status').getByText('Rex 🐕 has been added.').waitFor()
  await page.getByText('Small pet').waitFor()
  const [made] = await sql("select category_id, status from pets where name = 'Rex 🐕'")
  expect(made).toEqual({ category_id: 4n, status: 'pending' })

  await page.getByRole('link', { name: 'All animals' }).click()
  await scrollToEnd()
  await page.getByText('Rex 🐕', { exact: true }).click()
  await page.getByRole('heading', { name: 'Rex 🐕' }).waitFor()
  expect(await page.getByText('has been added').count()).toBe(0)
})

test('staff add an animal in a browser that stores nothing, on a page without HTTPS', async () => {
  page = await newPage(computer)
  await page.addInitScript(`
    delete Crypto.prototype.randomUUID
    Object.defineProperty(window, 'sessionStorage', {
      get() { throw new DOMException('', 'SecurityError') },
    })`)
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Rex')
  await page.getByLabel('Category').selectOption('Small pet')
  await page.getByLabel('Name').press('Enter')
  await page.getByRole('status').getByText('Rex has been added.').waitFor()
})

test('with forced colors the chosen filter looks different', async () => {
  await visit()
  await page.emulateMedia({ forcedColors: 'active' })
  const grounds = await page.evaluate(`[...document.querySelectorAll('.filter span')]
    .map((span) => getComputedStyle(span).backgroundColor)`)
  expect(new Set(grounds as string[]).size).toBe(2)
  await page.emulateMedia({ forcedColors: 'none' })
})

test('several animals are added in a row', async () => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  for (const name of ['Rex', 'Rexina']) {
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Category').selectOption('Dog')
    await page.getByLabel('Name').press('Enter')
    await page.getByText(`${name} has been added.`).waitFor()
    await page.getByRole('link', { name: 'Add another' }).click()
    expect(await page.getByLabel('Name').inputValue()).toBe('')
  }
  expect(await countPets(sql)).toBe(ANIMALS + 2)
})

test('the animal with the maximum id has a page, also after its creation; greater ids have none', async () => {
  const greatest = 2n ** 63n - 1n
  const [before] = await sql("select seq from sqlite_sequence where name = 'pets'")
  const nextIdIs = (id: bigint) =>
    sql("update sqlite_sequence set seq = ? where name = 'pets'", [id - 1n])
  await nextIdIs(greatest)
  try {
    await enter()
    await page.getByRole('link', { name: 'Add an animal' }).click()
    await page.getByLabel('Name').fill('Ultima')
    await page.getByLabel('Category').selectOption('Dog')
    await page.getByRole('button', { name: 'Add to the catalogue' }).click()
    await page.getByRole('heading', { name: 'Ultima' }).waitFor()
    expect(page.url()).toBe(`${address}/#/pets/${greatest}?status=all`)
    await page.reload()
    await page.getByRole('heading', { name: 'Ultima' }).waitFor()
    await page.goto(`${address}/#/pets/${greatest + 1n}`)
    await page.getByText('This address leads nowhere.').waitFor()
  } finally {
    await sql('delete from pets')
    await nextIdIs(BigInt(String(before?.seq)) + 1n)
  }
})

test('a read-only key cannot open the form for a new animal', async () => {
  await page.goto(`${address}/#/add`)
  await page.getByLabel('Your key').fill(` ${readOnlyKey}`)
  await page.keyboard.press('Enter')
  await page.getByText('This key may look, but not add animals.').waitFor()
  await page.getByLabel('Your key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Add an animal' }).waitFor()
})

test('a shop without its own key asks each visitor for one', async () => {
  await page.goto(`${address}/keyless/#/?status=all`)
  await page.getByRole('heading', { name: 'Welcome to Petstore' }).waitFor()
  expect(await page.innerText('body')).not.toContain('npm')
  await page.getByLabel('Your key').fill(readOnlyKey)
  await page.getByRole('button', { name: 'Open the catalogue' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)
  await page.goto(`${address}/keyless/#/add`)
  await page.getByRole('heading', { name: 'Staff' }).waitFor()
})

test('a shop whose key is revoked is closed to visitors, and open to staff', async () => {
  await page.goto(`${address}/closed/#/?status=all`)
  await page.getByText('Our catalogue is closed to visitors at the moment.').waitFor()
  expect(await page.getByLabel('Your key').inputValue()).toBe('')
  await page.getByLabel('Your key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Add an animal' }).waitFor()
})

test('categories have names and pictures, and unknown ones have a neutral picture', async () => {
  await sql("delete from pets where name <> 'Animal 1'")
  const named = [1n, 2n, 3n, 4n, 5n, 9_007_199_254_740_993n, -1n]
  await storePets(
    sql,
    named.map((categoryId) => ({ name: `Of ${categoryId}`, categoryId, status: 'available' })),
  )
  await visit()
  await page.getByText('Of -1').waitFor()
  expect(await cards().allInnerTexts()).toEqual([
    expect.stringContaining('Animal 1'),
    ...['Dog', 'Cat', 'Bird', 'Small pet', 'Fish', 'Other pet', 'Other pet'].map((name) =>
      expect.stringMatching(new RegExp(`Of [^]*${name}`)),
    ),
  ])
  // Each picture has a size, and the pictures differ.
  const drawn = await page.evaluate(`[...document.querySelectorAll('.card use')].map((use) => {
    const { x, y, width, height } = use.getBBox()
    return width > 0 ? [x, y, width, height].join() : 'nothing'
  })`)
  expect(drawn).not.toContain('nothing')
  expect(new Set(drawn as string[]).size).toBe(6)

  await page.getByText('Of 9007199254740993').click()
  await page.getByRole('heading', { name: 'Of 9007199254740993' }).waitFor()
  await page.locator('.pet').getByText('Other pet').waitFor()
})

test('links back to the catalogue keep the filter', async () => {
  const chosen = () => page.getByRole('radio', { checked: true }).getAttribute('value')
  await enter()
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.getByLabel('Name').fill('Animal 3')
  await page.getByText('Animal 3', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 3' }).waitFor()
  await page.reload()
  await page.getByText('Animal 6', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 6' }).waitFor()
  await page.getByRole('link', { name: 'Sold animals' }).click()
  await page.getByText('Animal 3', { exact: true }).waitFor()
  expect(await chosen()).toBe('sold')
  expect(await page.getByLabel('Name').inputValue()).toBe('Animal 3')

  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByRole('link', { name: 'Cancel' }).click()
  await page.getByText('Animal 3', { exact: true }).waitFor()
  expect(await chosen()).toBe('sold')
})

test.each([360, 700, 1280])('at %d pixels pages fill whole rows', async (width) => {
  page = await newPage({ viewport: { width, height: 800 } })
  await visit()
  await page.getByText('animals so far').waitFor()
  const columns = Number(
    await page.evaluate(
      "getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length",
    ),
  )
  expect(columns).toBeGreaterThan(1)
  const shown = Number(/\d+/.exec(await page.getByText('animals so far').innerText())?.[0])
  expect(shown % columns).toBe(0)
})

test('each control shows that it has the focus', async () => {
  const outlines = new Map<string, string>()
  for (const place of ['staff', '?status=all']) {
    await visit(place)
    await page.getByRole('heading', { level: 1 }).waitFor()
    for (let step = 0; step < 10; step++) {
      await page.keyboard.press('Tab')
      const [control, outline] = (await page.evaluate(`(() => {
        const control = document.activeElement
        if (control === document.body) return ['the end of the page', '']
        const shown = control.type === 'radio' ? control.nextElementSibling : control
        return [control.outerHTML, getComputedStyle(shown).outlineStyle]
      })()`)) as [string, string]
      outlines.set(control, outline)
    }
  }
  expect(outlines.size).toBeGreaterThan(10)
  expect([...outlines].filter(([, outline]) => outline === 'none')).toEqual([])
})

test('a card has its hover effect only on a device with hover', async () => {
  const lift = async () => {
    await page.locator('a.card').first().hover()
    await page.waitForFunction('document.getAnimations().length === 0')
    return await page.evaluate("getComputedStyle(document.querySelector('a.card')).translate")
  }
  await visit()
  expect(await lift()).toBe('0px -3px')
  await leave()
  await open(phone)
  await visit()
  expect(await lift()).toBe('none')
})

test('`npm run dev` in the copy uses a free port and needs no CORS origin', async () => {
  const taken = createServer().listen(5173, 'localhost')
  await once(taken, 'listening').catch(() => {}) // the port is in use in either case
  const server = spawn('npm', ['run', 'dev'], {
    cwd: shop.folder,
    detached: true, // a process group, which one signal ends
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PETSTORE_ORIGIN: service.origin },
  })
  const ended = once(server, 'close')
  try {
    let origin: string | undefined
    for await (const line of createInterface({ input: server.stdout })) {
      origin = /http:\/\/localhost:\d+/.exec(stripVTControlCharacters(line))?.[0]
      if (origin) break
    }
    expect(origin).toBeDefined()
    expect(origin).not.toContain(':5173')
    await page.goto(`${origin}`)
    // The note about the missing key is in the development server only.
    await page.getByText('npm run keys -- create shop --read-only').waitFor()
    shop.write('.env.local', `VITE_PETSTORE_KEY=${readOnlyKey}\n`)
    // Vite restarts and reloads the page, unless the file changes during its start.
    await eventually(async () => {
      await page.reload()
      await page.getByText('Animal 1', { exact: true }).waitFor({ timeout: 2_000 })
    })
    await sql('delete from pets')
    await page.reload()
    await page.getByText('npm run seed').waitFor()
  } finally {
    rmSync(path.join(shop.folder, '.env.local'), { force: true })
    if (server.pid) process.kill(-server.pid)
    await ended
    taken.close()
  }
})

test('the tests of the copy pass', async () => {
  const { code, output } = await run('npm', ['test'], shop.folder)
  expect(output).toMatch(/Tests .*[1-9]\d* passed/)
  expect(code).toBe(0)
})

test.each([
  ['Once', 1],
  ['Twice', 2],
])('after a lost response of Once a second submit as %s makes it %i', async (name, count) => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Once')
  await page.getByLabel('Category').selectOption('Dog')
  await page.route('**/createPet**', async (route) => {
    if (route.request().method() === 'POST') await route.fetch()
    await route.abort()
  })
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('nothing is added twice').waitFor()
  await page.unroute('**/createPet**')
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByRole('heading', { name }).waitFor()
  const made = await sql("select id from pets where name in ('Once', 'Twice')")
  expect(made).toHaveLength(count)
})

test('the form for the key waits for the response of the service', async () => {
  await visit('staff?status=all')
  await page.getByRole('heading', { name: 'Staff' }).waitFor()
  const answer = await holdAnswers()
  await page.getByLabel('Your key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'One moment…' }).waitFor()
  expect(await page.getByLabel('Your key').inputValue()).toBe(key)
  expect(await page.getByRole('heading', { name: 'Our animals' }).count()).toBe(0)
  answer()
  await page.getByText('Animal 1', { exact: true }).waitFor()
})

test('a wrong key is rejected with a message', async () => {
  const field = page.getByLabel('Your key')
  await enter('petstore_wrong')
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await page.locator('#key:focus').waitFor()
  expect(await field.inputValue()).toBe('petstore_wrong')
  const described = String(await field.getAttribute('aria-describedby')).split(' ')
  expect(described).toContain(await page.getByRole('alert').getAttribute('id'))
  expect(await field.getAttribute('type')).toBe('password')
  await page.getByRole('button', { name: 'Show the key' }).click()
  expect(await field.getAttribute('type')).toBe('text')
  await page.getByRole('button', { name: 'Hide the key' }).click()
  expect(await field.getAttribute('type')).toBe('password')

  await field.fill('petstore_wrong_again')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Enter' }).waitFor()
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await field.fill(key)
  await page.keyboard.press('Enter')
  await page.getByText('Animal 1', { exact: true }).waitFor()

  await page.reload()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByRole('button', { name: 'Leave' }).click()
  await field.waitFor()
  await page.reload()
  await field.waitFor()
  await page.getByRole('link', { name: 'Our animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
})

test('a revoked key returns the visitor to the form for the key', async () => {
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.evaluate("sessionStorage.setItem('petstore-key', 'petstore_revoked')")
  await page.reload()
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await page.locator('#key:focus').waitFor()
  expect(await page.getByLabel('Your key').inputValue()).toBe('petstore_revoked')
  await page.getByRole('link', { name: 'Our animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
})

test('the page recovers after a restart of the service without a reload', async () => {
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.evaluate('window.notReloaded = true')

  await stop(service)
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.getByText('The shop cannot be reached right now').waitFor()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Phoenix')
  await page.getByLabel('Category').selectOption('Dog')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('nothing is lost').waitFor()
  await page.getByLabel('Name').fill('Ash')
  await page.getByText('nothing is lost').waitFor({ state: 'hidden' })
  await page.goBack()
  await page.getByText('The shop cannot be reached right now').waitFor()

  service = await runServer(variables)
  await page.getByText('Animal 3', { exact: true }).waitFor()
  await page.getByText('The shop cannot be reached right now').waitFor({ state: 'hidden' })
  expect(await page.evaluate('window.notReloaded')).toBe(true)
})

test('while the service is unreachable, a button starts the next attempt', async () => {
  // Disables the automatic attempts.
  page = await newPage(computer)
  await page.addInitScript(`const { setTimeout } = window
    window.setTimeout = (act, delay, ...rest) => delay >= 1000 ? 0 : setTimeout(act, delay, ...rest)`)
  await visit()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.route('**/trpc/**', (route) => route.abort())
  await page.getByRole('radio', { name: 'Sold' }).check()
  await page.getByText('The shop cannot be reached right now').waitFor()
  expect(await page.locator('.skeleton').count()).toBe(0)
  await page.unroute('**/trpc/**')
  await page.getByRole('button', { name: 'Try now' }).click()
  await page.getByText('Animal 3', { exact: true }).waitFor()

  const json = { error: transformer.serialize(errorShape(tooManyRequests(1, 60))) }
  const headers = { 'access-control-allow-origin': '*' }
  await page.route('**/trpc/**', (route) => route.fulfill({ status: 429, headers, json }))
  await page.getByRole('radio', { name: 'Reserved' }).check()
  await page.getByText('The shop cannot be reached right now').waitFor()
})

test.each([
  ['a computer', computer],
  ['a phone', phone],
])('axe finds no violations in the light and the dark color scheme on %s', async (_, device) => {
  await sql("delete from pets where name not in ('Animal 1', 'Animal 2', 'Animal 3')") // one of each status
  page = await newPage({ ...device, reducedMotion: 'reduce' })
  const expectNoBarriers = async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      expect(await barriers(page, colorScheme), colorScheme).toEqual([])
  }
  await enter('petstore_wrong')
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await expectNoBarriers()
  await enter()
  await page.getByText('Animal 1', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 1' }).waitFor()
  await expectNoBarriers()
  await page.getByRole('link', { name: 'All animals' }).click()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await expectNoBarriers()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('Please enter a name').waitFor()
  await expectNoBarriers()
  await page.getByLabel('Name').fill('Rex')
  await page.getByLabel('Category').selectOption('Dog')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('Rex has been added.').waitFor()
  await expectNoBarriers()
  await page.goto(`${address}/#/pets/999999999999999999`)
  await page.getByText('There is no animal').waitFor()
  await expectNoBarriers()
  await page.route('**/trpc/**', (route) => route.abort())
  await page.goto(`${address}/#/?status=sold`)
  await page.getByText('cannot be reached right now').waitFor()
  await expectNoBarriers()
})

test('on a phone nothing overflows the viewport', async () => {
  await open(phone)
  const overflow = () => page.evaluate('document.documentElement.scrollWidth - innerWidth')
  const name = 'Donaudampfschifffahrtsgesellschaftskapitän'.repeat(3)
  await sql('update pets set name = ?, category_id = ?', [name, 2n ** 63n - 1n])
  await enter()
  await page.getByText(name).first().waitFor()
  expect(await overflow()).toBe(0)
  await page.getByText(name).first().click()
  await page.getByRole('heading', { name }).waitFor()
  expect(await overflow()).toBe(0)
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').waitFor()
  expect(await overflow()).toBe(0)
})

test.each([
  ['a computer', computer],
  ['a phone', phone],
])('the header is the same on each page, on %s', async (_, device) => {
  await open(device)
  const header = async () => {
    const { width, height } =
      (await page.getByText('Petstore', { exact: true }).boundingBox()) ?? {}
    expect(width).toBeGreaterThan(80) // the name beside the picture
    return [height, (await page.locator('header').boundingBox())?.height]
  }
  await page.goto(address)
  await page.getByText('Animal 1', { exact: true }).waitFor()
  const first = await header()
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  expect(await header()).toEqual(first)
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByRole('heading', { name: 'Add an animal' }).waitFor()
  expect(await header()).toEqual(first)
})

test('on a phone every touch target is at least 44 pixels high', async () => {
  await open(phone)
  const expectRoom = async () => {
    const places = (await page.evaluate(
      `[...document.querySelectorAll('a, button, .control, .filter span')].map((place) =>
        ({ html: place.outerHTML, height: place.getBoundingClientRect().height }))`,
    )) as { html: string; height: number }[]
    expect(places.length).toBeGreaterThan(3)
    expect(places.filter(({ height }) => height < 44)).toEqual([])
  }
  await visit('staff')
  await page.getByLabel('Your key').waitFor()
  await expectRoom()
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await expectRoom()
  await page.getByText('Animal 1', { exact: true }).click()
  await page.getByRole('heading', { name: 'More animals' }).waitFor()
  await expectRoom()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').waitFor()
  await expectRoom()
})

test('an empty catalogue shows a message until an animal is added', async () => {
  await sql('delete from pets')
  await visit()
  await page.getByText('There is no animal yet.').waitFor()
  await page.getByRole('link', { name: 'Ask what will come' }).waitFor()
  await enter()
  await page.getByText('There is no animal yet.').waitFor()
  await page.locator('main').getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Rex')
  await page.getByLabel('Category').selectOption('Dog')
  await page.getByLabel('Name').press('Enter')
  await page.getByRole('link', { name: 'All animals' }).click()
  await page.getByText('1 animal in all').waitFor()
})
