/** Runs the calls of calls.ts on a page, against the stand-in of the package in a service worker. */
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import { setupWorker } from 'msw/browser'
import { type Keys, outcomes } from './calls.ts'

/** `url` may be a path on the origin of the page, such as `/trpc`. */
async function run(url: string, keys: Keys): Promise<[string, string][]> {
  const apiKeys = [keys.valid, keys.readOnly]
  const worker = setupWorker(...petstoreHandlers({ url, apiKeys }))
  await worker.start({ onUnhandledFrame: 'error', quiet: true })
  return await outcomes(url, keys)
}

Object.assign(window, { run })
