/** Waiting for what the third party uses, which is installed while other tests run. */
import { readFileSync } from 'node:fs'
import { inject, vi } from 'vitest'

/** Milliseconds that the installation may take, from a slow registry too. */
export const INSTALLATION = 300_000

/** Waits until everything is installed. Throws what npm says when it does not end well. */
export async function installed(): Promise<void> {
  const file = inject('thirdPartyInstalled')
  const problem = await vi.waitFor(() => readFileSync(file, 'utf8'), {
    timeout: INSTALLATION,
    interval: 100,
  })
  if (problem) throw new Error(problem)
}
