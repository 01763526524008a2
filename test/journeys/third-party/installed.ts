/** Waits for the third-party tools, which are installed during other tests. */
import { inject } from 'vitest'
import * as installation from '../../support/installation.ts'

export { INSTALLATION } from '../../support/installation.ts'

/** Waits for the installation. Throws the error of npm. */
export const installed = (): Promise<void> => installation.installed(inject('thirdPartyInstalled'))
