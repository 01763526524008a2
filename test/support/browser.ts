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

/**
 * The windows in which WCAG 2.2 wants nothing lost and no scrolling sideways: text of twice the size (1.4.4), on a
 * phone, and 320 pixels (1.4.10). `fontSize` is the browser's default, in pixels.
 */
export const smallest = {
  'with a default font of 32 px': { viewport: { width: 390, height: 844 }, fontSize: 32 },
  'at a width of 320 px': { viewport: { width: 320, height: 640 }, fontSize: 16 },
} as const

/** Sets the size of the browser's default font for a page, in pixels, as a reader does in the settings. */
export async function setFontSize(page: Page, pixels: number): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setFontSizes', { fontSizes: { standard: pixels } })
}

/** Returns what is wider than its window or cut off at the side of its box, but for fields, which scroll. */
export const tooWide = async (page: Page): Promise<string[]> =>
  (await page.evaluate(`[...document.querySelectorAll('html, body *:not(input, select, textarea)')]
    .filter((part) => part.scrollWidth > part.clientWidth && part.checkVisibility())
    .filter((part) => part.matches('html') || getComputedStyle(part).overflowX !== 'visible')
    .map((part) => part.scrollWidth + ' in ' + part.clientWidth + ': ' + part.outerHTML.slice(0, 200))`)) as string[]
