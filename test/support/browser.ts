/** A real browser: the Chromium or Chrome of this machine, without a window. */
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The first there is. A headless shell is the same engine with half the work: it has no windows. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/** Starts the browser. It asks nobody but the pages it is sent to. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = places.find((place) => existsSync(place))
  if (!executablePath) throw new Error('The tests need Chromium or Chrome: run test/install')
  return await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox', // containers often allow no other
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
 * What axe finds in a page in these colours, each with its element. In dark ones it looks at the
 * colours alone: the rest is the same page, on which it spends most of its time.
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
