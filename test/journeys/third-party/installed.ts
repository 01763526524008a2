/** Waiting for what the third party uses, which is installed while other tests run. */
import { inject } from 'vitest'
import * as installation from '../../support/installation.ts'

export { INSTALLATION } from '../../support/installation.ts'

/** Waits until everything is installed. Throws what npm says when it does not end well. */
export const installed = (): Promise<void> => installation.installed(inject('thirdPartyInstalled'))
