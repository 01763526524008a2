/** The benchmark takes minutes: that it can be loaded is what is tested of it each time. */
import { expect, test } from 'vitest'
import { runToEnd } from '../support/process.ts'

test('it says how it is used', async () => {
  const { code, stdout } = await runToEnd('bench/run.ts', {}, ['--help'])
  expect(code).toBe(0)
  expect(stdout).toContain('npm run bench -- [OPTIONS]')
})
