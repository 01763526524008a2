/** A real browser: the Chromium or Chrome of this machine, headless. */
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The first one that exists. A headless shell is the same engine without windows, and faster. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/** Starts the browser. It sends no requests except those of its pages. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = places.find((place) => existsSync(place))
  if (!executablePath) throw new Error('The tests need Chromium or Chrome: run test/install')
  return await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox', // many containers do not support the sandbox
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/**
 * Returns the violations that axe finds in a page with a color scheme, each with its element. In the
 * dark scheme only the colors are checked: the rest of the page is the same, and slow to check.
 */
export async function barriers(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  await page.emulateMedia({ colorScheme })
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source)
  const options: axe.RunOptions = {
    resultTypes: ['violations'],
    ...(colorScheme === 'dark' && { runOnly: ['color-contrast', 'link-in-text-block'] }),
  }
  const { violations } = (await page.evaluate(
    `axe.run(${JSON.stringify(options)})`,
  )) as axe.AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
