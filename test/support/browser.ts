/** A real browser: the Chromium or Chrome of this machine, without a window. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

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
