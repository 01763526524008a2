/** The example storefront in a real browser, from another origin than the service's. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import axe from 'axe-core'
import express from 'express'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { newDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/mysql.ts'
import { storePets } from '../support/pets.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { keys } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

const root = path.resolve(import.meta.dirname, '../..')
const ANIMALS = 250
const statuses = ['available', 'pending', 'sold'] as const

const built = mkdtempSync(path.join(tmpdir(), 'petstore-storefront-'))
let variables: Record<string, string>
let database: TestDatabase
let sql: Sql
let key: string
let service: ServerProgram
let site: Server
let address: string
let browser: Browser

beforeAll(async () => {
  database = await newDatabase()
  key = (await keys.create(database.url, 'storefront')).key
  sql = await openSql(database.url)
  // The page is another origin, on another name even: all that it asks for goes by CORS.
  const [port, sitePort] = [await freePort(), await freePort()]
  address = `http://localhost:${sitePort}`
  variables = { PORT: String(port), DATABASE_URL: database.url, CORS_ORIGINS: address }
  service = await runServer(variables)

  execFileSync('npm', ['run', 'build', '-w', 'examples/storefront', '--', '--outDir', built], {
    cwd: root,
    stdio: 'pipe',
    env: { ...process.env, VITE_PETSTORE_URL: `${service.origin}/trpc` },
  })
  site = express().use(express.static(built)).listen(sitePort, '127.0.0.1')
  await once(site, 'listening')
  browser = await startBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.close()
  site?.close()
  await stop(service)
  await sql.close()
  await database.remove()
  rmSync(built, { recursive: true, force: true })
})

async function stop({ child, exited }: ServerProgram): Promise<void> {
  child.kill()
  await exited
}

let context: BrowserContext
let page: Page
let problems: string[]
beforeEach(async () => {
  await sql('delete from pets')
  await addAnimals(ANIMALS)
  context = await browser.newContext()
  page = await context.newPage()
  page.setDefaultTimeout(10_000)
  problems = []
  page.on('pageerror', (error) => problems.push(error.message))
})
afterEach(async () => {
  await context.close()
  expect(problems).toEqual([])
})

/** Animals with names by their number, and each status in turn. */
async function addAnimals(count: number): Promise<void> {
  const pets = Array.from({ length: count }, (_, index) => ({
    name: `Animal ${index + 1}`,
    categoryId: BigInt((index % 5) + 1),
    status: statuses[index % 3] ?? 'available',
  }))
  await storePets(sql, pets)
}

async function enter(apiKey = key): Promise<void> {
  await page.goto(address)
  await page.getByLabel('API key').fill(apiKey)
  await page.getByRole('button', { name: 'Open the catalogue' }).click()
}

const cards = () => page.getByRole('listitem')

const scrollTop = () => page.evaluate('scrollY')

async function scrollToEnd(): Promise<void> {
  const end = page.getByText('animals in all')
  while (!(await end.isVisible())) {
    await page.mouse.wheel(0, 4000)
    await page.waitForTimeout(50)
  }
}

test('the catalogue, to its end', async () => {
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await scrollToEnd()
  expect(await cards().count()).toBe(ANIMALS)
  await page.getByText(`${ANIMALS} animals in all`).waitFor()
})

test('the catalogue by status', async () => {
  await enter()
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.getByText('Animal 3', { exact: true }).waitFor()
  await scrollToEnd()
  expect(await cards().count()).toBe(83)
  expect(await page.getByRole('listitem').filter({ hasText: 'pending' }).count()).toBe(0)
  expect(page.url()).toContain('status=sold')

  await sql("delete from pets where status = 'pending'")
  await page.getByRole('radio', { name: 'pending' }).check()
  await page.getByText('No animal is pending.').waitFor()
})

test('an animal, and back to where one was', async () => {
  await enter()
  await scrollToEnd()
  await page.getByText('Animal 200', { exact: true }).click()
  await page.getByRole('heading', { name: 'Animal 200' }).waitFor()
  expect(await page.title()).toBe('Animal 200 · Petstore')
  await page.locator('h1:focus').waitFor()
  expect(await scrollTop()).toBe(0)
  await page.goBack()
  await expect.poll(scrollTop).toBeGreaterThan(2000)

  await page.goto(`${address}/#/pets/999999999999999999`)
  await page.getByText('There is no animal with the number 999999999999999999').waitFor()
})

test('an animal is added, once the service takes what was entered', async () => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  const [name, category] = [page.getByLabel('Name'), page.getByLabel('Category')]
  await category.fill('three')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('Name must not be empty').waitFor()
  await page.getByText('Category must be an integer from -9223372036854775808').waitFor()
  expect(await name.getAttribute('aria-invalid')).toBe('true')
  await page.locator('input[name=name]:focus').waitFor()

  await name.fill('Rex 🐕')
  await category.fill('9007199254740993')
  await page.getByLabel('Availability').selectOption('pending')
  await name.press('Enter')
  await page.getByRole('heading', { name: 'Rex 🐕' }).waitFor()
  await page.getByText('9007199254740993').waitFor()
  await page.getByRole('link', { name: 'All animals' }).click()
  await scrollToEnd()
  await page.getByText('Rex 🐕').waitFor()
})

test('an answer that is lost: to send again adds nothing twice', async () => {
  await enter()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Once')
  await page.getByLabel('Category').fill('1')
  await page.route('**/createPet**', async (route) => {
    if (route.request().method() === 'POST') await route.fetch()
    await route.abort()
  })
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('nothing is added twice').waitFor()
  await page.unroute('**/createPet**')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByRole('heading', { name: 'Once' }).waitFor()
  const made = await sql("select id from pets where name = 'Once'")
  expect(made).toHaveLength(1)
})

test('a wrong key', async () => {
  await enter('petstore_wrong')
  await page.getByRole('alert').getByText('does not know this key').waitFor()
  await page.getByLabel('API key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByText('Animal 1', { exact: true }).waitFor()

  await page.reload()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Change key' }).click()
  await page.getByLabel('API key').waitFor()
})

test('the service stops and starts again: the page goes on without a reload', async () => {
  await enter()
  await page.getByText('Animal 1', { exact: true }).waitFor()
  await page.evaluate('window.notReloaded = true')

  await stop(service)
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.getByText('The service cannot be reached right now').waitFor()
  await page.getByRole('link', { name: 'Add an animal' }).click()
  await page.getByLabel('Name').fill('Phoenix')
  await page.getByLabel('Category').fill('1')
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
  await page.getByText('nothing is lost').waitFor()
  await page.goBack()
  await page.getByText('The service cannot be reached right now').waitFor()

  service = await runServer(variables)
  await page.getByText('Animal 3', { exact: true }).waitFor()
  await page.getByText('The service cannot be reached right now').waitFor({ state: 'hidden' })
  expect(await page.evaluate('window.notReloaded')).toBe(true)
})

test.each(['light', 'dark'] as const)(
  'axe finds no barrier, in %s colours',
  async (colorScheme) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const barriers = async () => {
      await page.evaluate(axe.source)
      const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`)
    }
    await enter('petstore_wrong')
    await page.getByRole('alert').getByText('does not know this key').waitFor()
    expect(await barriers()).toEqual([])
    await enter()
    await page.getByText('Animal 1', { exact: true }).click()
    await page.getByRole('heading', { name: 'Animal 1' }).waitFor()
    expect(await barriers()).toEqual([])
    await page.getByRole('link', { name: 'All animals' }).click()
    await page.getByText('Animal 1', { exact: true }).waitFor()
    expect(await barriers()).toEqual([])
    await page.getByRole('link', { name: 'Add an animal' }).click()
    await page.getByRole('button', { name: 'Add to the catalogue' }).click()
    await page.getByText('Name must not be empty').waitFor()
    expect(await barriers()).toEqual([])
  },
)

test('fine on a phone: nothing is wider than the screen', async () => {
  await page.setViewportSize({ width: 360, height: 640 })
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

test('an empty catalogue', async () => {
  await sql('delete from pets')
  await enter()
  await page.getByText('There is no animal yet.').waitFor()
})
