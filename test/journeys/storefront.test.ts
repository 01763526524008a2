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
import { barriers, startBrowser } from '../support/browser.ts'
import { emptyProject, type Project, run } from '../support/client-package.ts'
import { newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { INSTALLATION } from '../support/installation.ts'
import { freePort } from '../support/mysql.ts'
import { storePets } from '../support/pets.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { keys } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

const root = path.resolve(import.meta.dirname, '../..')
const ANIMALS = 110
/** The number of animals that the catalogue shows before "Show more". */
const UNASKED = 96
/** The number of animals that it searches before "Look further". */
const LOOKED_THROUGH = 960
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
  await service.end('SIGTERM')
  await sql.close()
  await database.remove()
  shop.remove()
})

const computer: BrowserContextOptions = { viewport: { width: 1280, height: 720 } }
const phone: BrowserContextOptions = {
  viewport: { width: 360, height: 640 },
  isMobile: true,
  hasTouch: true,
}

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
  page = await (await browser.newContext(device)).newPage()
  page.setDefaultTimeout(30_000)
  page.on('pageerror', (error) => problems.push(error.message))
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
}

const shown = (text: string | RegExp) => page.getByText(text, { exact: true }).first().waitFor()
const follow = (name: string) => page.getByRole('link', { name }).first().click()
const heading = (name: string) => page.getByRole('heading', { name }).waitFor()

/** Collects the paths of the requests for lists from now on. */
function watchLists(): string[] {
  const lists: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname.includes('listPets')) lists.push(pathname)
  })
  return lists
}

/** Scrolls until this number of cards is there. */
async function scrollTo(count: number): Promise<void> {
  while ((await page.getByRole('listitem').count()) < count) {
    await page.mouse.wheel(0, 4000)
    await page.waitForFunction('new Promise(requestAnimationFrame)')
  }
}

test('a visitor scrolls through the available animals, and through all', async () => {
  await page.goto(address)
  await shown('Animal 1')
  expect(await page.getByRole('radio', { checked: true }).getAttribute('value')).toBe('available')
  expect(await page.getByText('Animal 2', { exact: true }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)
  await page.getByRole('radio', { name: 'All' }).check()
  await shown('Animal 2')
  await scrollTo(UNASKED)

  // The list loads no more by itself, so that its footer can be reached.
  const lists = watchLists()
  await page.mouse.wheel(0, 4000)
  await page.getByRole('button', { name: 'Show more' }).click()
  await shown(`${ANIMALS} animals in all`)
  expect(lists).toHaveLength(1)
  await scrollTo(ANIMALS)
  await follow('Animal 100')
  await heading('Animal 100')
  expect(await page.evaluate('scrollY')).toBe(0)
  await page.goBack()
  await page.waitForFunction('scrollY > 2000')

  await sql("delete from pets where status = 'pending'")
  await page.getByRole('radio', { name: 'Reserved' }).check()
  await shown('No animal is reserved right now.')
})

test('a visitor searches by name and kind, and further where the first animals do not match', async () => {
  await addAnimals(LOOKED_THROUGH)
  await storePets(sql, [{ name: 'Zoë', categoryId: 3n, status: 'available' }])
  await visit()
  await page.getByLabel('Name').pressSequentially('zoe')
  await shown(new RegExp(`^None found among the first ${LOOKED_THROUGH} animals`))
  await page.getByRole('button', { name: 'Look further' }).click()
  await shown(new RegExp(`^1 found among all ${ANIMALS + LOOKED_THROUGH + 1} animals`))
  await follow('Zoë')
  await heading('Zoë')
  await page.goBack()
  await shown(new RegExp(`^1 found among all ${ANIMALS + LOOKED_THROUGH + 1} animals`))
  expect(await page.getByLabel('Name').inputValue()).toBe('zoe')
  await page.getByLabel('Kind').selectOption('Dog')
  await shown(/^None found among/)
  await follow('Show every name and kind')
  await shown('Animal 2')
})

test('the page of an animal shows its status, the shop, and more animals, in one request', async () => {
  const [pet] = await sql("select id from pets where name = 'Animal 2'")
  const lists = watchLists()
  await visit(`pets/${pet?.id}?status=all`)
  await shown('Animal 2 is reserved at the moment.')
  expect(await page.getByRole('link', { name: 'Write to us' }).getAttribute('href')).toBe(
    `mailto:hello@petstore.example?subject=Animal%202%20(no.%20${pet?.id})`,
  )
  expect(await page.getByRole('link', { name: 'Call' }).getAttribute('href')).toBe('tel:+15550100')
  await heading('More animals')
  expect(lists).toEqual(['/trpc/listPets,listPets'])
  expect(await page.locator('.more .name').allInnerTexts()).toEqual(
    [3, 4, 5, 6].map((number) => `Animal ${number}`),
  )
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'Copy the number' }).click()
  await shown('Copied')
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(String(pet?.id))
  await follow('Animal 3')
  await shown('Animal 3 has found a home.')

  const greatest = 2n ** 63n - 1n
  await sql("update pets set id = ?, category_id = ? where name = 'Animal 4'", [greatest, greatest])
  await visit(`pets/${greatest}`)
  await shown('Animal 4 is looking for a home.')
  await shown('Other pet')
  await visit(`pets/${greatest + 1n}`)
  await shown('This address leads nowhere.')
  await visit('pets/999999999999999999')
  await shown('There is no animal with the number 999999999999999999.')
})

test('staff add animals, and see what is wrong with a key and with a field', async () => {
  await enter('petstore_wrong')
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await page.locator('#key:focus').waitFor()
  await enter()
  await page.getByRole('radio', { name: 'Sold' }).check()
  await follow('Add an animal')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await shown('Please choose a category')
  const name = page.locator('input[name=name]:focus')
  expect(await name.getAttribute('aria-invalid')).toBe('true')
  const described = page.locator(`#${await name.getAttribute('aria-describedby')}`)
  expect(await described.innerText()).toBe('Please enter a name')
  await add('x'.repeat(256)) // an error that only the service detects
  await shown('The name must have at most 255 characters')
  await page.getByLabel('Availability').selectOption('Reserved')
  for (const each of ['Rex 🐕', 'Rexina']) {
    await add(each)
    await page.getByRole('status').getByText(`${each} has been added.`).waitFor()
    await heading(each)
    await follow('Add another')
    expect(await page.getByLabel('Name').inputValue()).toBe('')
  }
  const made = await sql("select category_id, status from pets where name like 'Rex%' order by id")
  expect(made).toEqual([
    { category_id: 4n, status: 'pending' },
    { category_id: 4n, status: 'available' },
  ])
  await follow('Cancel')
  await shown('Animal 3')
  expect(await page.getByRole('radio', { checked: true }).getAttribute('value')).toBe('sold')
  await page.reload()
  await page.getByRole('button', { name: 'Leave' }).click()
  await shown('Animal 3')
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)
})

test('after a lost answer the same animal is added once, and another one as well', async () => {
  await enter()
  for (const second of ['Once', 'Twice']) {
    await follow('Add an animal')
    await page.route('**/createPet**', async (route) => {
      if (route.request().method() === 'POST') await route.fetch()
      await route.abort()
    })
    await add('Once')
    await page.getByText('nothing is added twice').waitFor()
    await page.unroute('**/createPet**')
    await page.getByLabel('Name').fill(second)
    await page.getByRole('button', { name: 'Add to the catalogue' }).click()
    await heading(second)
  }
  const made = await sql("select name from pets where name in ('Once', 'Twice') order by id")
  expect(made.map(({ name }) => name)).toEqual(['Once', 'Once', 'Twice'])
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
  await page.getByRole('status').getByText('Rex has been added.').waitFor()
})

test('a shop lets visitors and staff do what their key may', async () => {
  await visit('add')
  await page.getByLabel('Your key').fill(` ${readOnlyKey}`)
  await page.keyboard.press('Enter')
  await shown('This key may look, but not add animals.')
  await page.goto(`${address}/keyless/#/?status=all`)
  await heading('Welcome to Petstore')
  await page.getByLabel('Your key').fill(readOnlyKey)
  await page.getByRole('button', { name: 'Open the catalogue' }).click()
  await shown('Animal 1')
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0)

  await page.evaluate('sessionStorage.clear()')
  await page.goto(`${address}/closed/#/?status=all`)
  await page.getByText('Our catalogue is closed to visitors at the moment.').waitFor()
  await page.getByLabel('Your key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Add an animal' }).waitFor()
})

test('the page recovers after a restart of the service without a reload', async () => {
  await enter()
  await shown('Animal 1')
  await page.evaluate('window.notReloaded = true')
  await service.end('SIGTERM')
  await page.getByRole('radio', { name: 'Sold' }).check()
  await page.getByText('The shop cannot be reached right now').waitFor()
  await follow('Add an animal')
  await add('Phoenix')
  await page.getByText('nothing is lost').waitFor()
  await page.goBack()
  service = await runServer(variables)
  await page
    .getByRole('button', { name: 'Try now' })
    .click({ timeout: 2_000 })
    .catch(() => {}) // it tries by itself, too
  await shown('Animal 3')
  await page.getByText('The shop cannot be reached right now').waitFor({ state: 'hidden' })
  expect(await page.evaluate('window.notReloaded')).toBe(true)
})

test('every page is without barriers, on a computer, on a phone, in both schemes and in forced colors', async () => {
  const long = 'Donaudampfschifffahrtsgesellschaftskapitän'.repeat(3)
  await sql("delete from pets where name not in ('Animal 1', 'Animal 2', 'Animal 3')")
  await sql("update pets set name = ? where name = 'Animal 2'", [long])
  for (const device of [computer, phone]) {
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
    await shown('Animal 1')
    await check()
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
  }
  await open({ ...computer, forcedColors: 'active' })
  await visit()
  await shown('Animal 1')
  const grounds = await page.evaluate(`[...document.querySelectorAll('.filter span')]
    .map((span) => getComputedStyle(span).backgroundColor)`)
  expect(new Set(grounds as string[]).size).toBe(2)
  const unseen = []
  for (let step = 0; step < 10; step++) {
    await page.keyboard.press('Tab')
    unseen.push(
      await page.evaluate(`(() => {
        const control = document.activeElement
        const seen = control.type === 'radio' ? control.nextElementSibling : control
        return getComputedStyle(seen).outlineStyle === 'none' && control.outerHTML
      })()`),
    )
  }
  expect(unseen).toEqual(Array(10).fill(false))
})

test('the copy is tested, is small, and `npm run dev` needs neither a free port nor CORS', async () => {
  const { code, output } = await run('npm', ['test'], shop.folder)
  expect(output).toMatch(/Tests .*[1-9]\d* passed/)
  expect(code).toBe(0)
  const assets = path.join(shop.folder, 'dist/assets')
  const scripts = readdirSync(assets).filter((name) => name.endsWith('.js'))
  const sizes = scripts.map((name) => gzipSync(readFileSync(path.join(assets, name))).length)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(98_000)

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
