/** `npm run pictures`: makes the pictures of README from the docs page and the storefront as they are. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { build, preview } from 'vite'
import { startBrowser } from '../test/support/browser.ts'
import { freePort } from '../test/support/mysql.ts'
import { programs, runServer, runToEnd } from '../test/support/process.ts'

const images = path.join(import.meta.dirname, 'images')
const root = path.join(import.meta.dirname, '../examples/storefront')
/** Bytes that a picture may have: a reader of README loads all of them. */
const LIMIT = 175_000

/** The origin that the docs page shows: not the port of this run, so that its picture stays the same. */
const SHOWN = 'http://localhost:3000'

const folder = mkdtempSync(path.join(tmpdir(), 'petstore-pictures-'))
const cleanUp: (() => unknown)[] = [() => rmSync(folder, { recursive: true })]
try {
  const variables = {
    DATABASE_URL: `sqlite:${folder}/petstore.db?create`,
    BASE_URL: `${SHOWN}/v1`,
  }
  await runToEnd(programs.seed, variables)
  const words = ['create', 'shop', '--forever', '--read-only']
  const { stdout } = await runToEnd(programs.keys, variables, words)
  const service = await runServer(variables)
  cleanUp.push(
    () => service.exited,
    () => service.child.kill(),
  )

  process.env.VITE_PETSTORE_URL = '/trpc'
  process.env.VITE_PETSTORE_KEY = stdout.trim()
  process.env.PETSTORE_ORIGIN = service.origin
  const outDir = path.join(folder, 'shop')
  await build({ root, logLevel: 'warn', build: { outDir, emptyOutDir: true } })
  const port = await freePort()
  const shop = await preview({ root, build: { outDir }, preview: { port, host: '127.0.0.1' } })
  cleanUp.push(() => shop.close())

  const browser = await startBrowser()
  cleanUp.push(() => browser.close())
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  })
  await page.route(`${SHOWN}/**`, async (route) => {
    const url = route.request().url().replace(SHOWN, service.origin)
    await route.fulfill({ response: await route.fetch({ url }) })
  })
  const take = async (name: string, url: string) => {
    await page.goto(url, { waitUntil: 'networkidle' })
    const file = path.join(images, `${name}.png`)
    await page.screenshot({ path: file })
    const { size } = statSync(file)
    console.log(`${path.relative('.', file)}: ${Math.round(size / 1000)} kB`)
    if (size > LIMIT) throw new Error(`${file} must have at most ${LIMIT / 1000} kB`)
  }
  await take('storefront', `http://127.0.0.1:${port}/`)
  await take('docs-page', `${SHOWN}/docs/`)
} finally {
  for (const end of cleanUp.reverse()) await end()
}
