/** The docs page in a real browser: a third party's first look. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'

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

beforeEach(async () => {
  page = await browser.newPage()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(service.origin) && !url.startsWith('data:')) foreign.push(url)
  })
  await page.goto(service.origin)
  await page.getByText('List all animals').waitFor()
})
afterEach(async () => {
  await page.close()
  expect(complaints.splice(0)).toEqual([])
  expect(foreign.splice(0)).toEqual([])
})

const operation = (id: string) => page.locator(`#operations-pets-${id}`)

async function authorize(key: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.auth-container input').fill(key)
  await page.locator('.auth-btn-wrapper .authorize').click()
  await page.locator('.auth-btn-wrapper .btn-done').click()
}

/** Runs an operation as it is filled in, and gives the status and the body that the page shows. */
async function execute(id: string): Promise<{ status: string; body: string }> {
  await operation(id).locator('.execute').click()
  const live = operation(id).locator('.live-responses-table')
  await live.waitFor()
  const status = await live.locator('tbody .response-col_status').first().innerText()
  const body = await live.locator('.highlight-code code').first().innerText()
  return { status: status.trim(), body }
}

test('/ leads to it', () => {
  expect(page.url()).toBe(`${service.origin}/docs/`)
})

test('authorize, createPet, listPets', async () => {
  await authorize(service.key)
  await operation('createPet').locator('.opblock-summary-control').click()
  await operation('createPet')
    .locator('textarea.body-param__text')
    .fill('{"name": "Rex", "categoryId": 3}')
  const made = await execute('createPet')
  expect(made.status).toBe('201')
  expect(JSON.parse(made.body)).toEqual({ id: 1, name: 'Rex', categoryId: 3, status: 'available' })
  await operation('listPets').locator('.opblock-summary-control').click()
  const listed = await execute('listPets')
  expect(listed.status).toBe('200')
  expect(JSON.parse(listed.body)).toEqual([JSON.parse(made.body)])
})

test('getPet is struck through, and says until when it is there', async () => {
  const selector = '#operations-pets-getPet .opblock-summary-path__deprecated'
  const style = await page.evaluate(
    `getComputedStyle(document.querySelector('${selector}')).textDecorationLine`,
  )
  expect(style).toBe('line-through')
  expect(await operation('getPet').innerText()).toContain('5 December 2030')
})

test('a file that is not one of the page is 404', async () => {
  for (const file of ['mount.ts', 'swagger-ui.js', 'index.html', '../app.ts', '%2e%2e/app.ts']) {
    const { status } = await fetch(`${service.origin}/docs/${file}`)
    expect(status, file).toBe(404)
  }
})
