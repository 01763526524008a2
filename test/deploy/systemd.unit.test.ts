/** The units of systemd start the service as `npm start` does. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { readRoot } from '../support/image.ts'

const { start } = JSON.parse(readRoot('package.json')).scripts

test.each(['petstore.service', 'petstore@.service'])('deploy/%s', (name) => {
  const unit = readRoot(`deploy/${name}`)
  const [variables, command] = start.split(' exec ')
  expect(unit).toContain(`Environment=${variables}\n`)
  expect(unit).toContain(`ExecStart=/opt/petstore/${command}\n`)
})

test.runIf(spawnSync('systemd-analyze', ['--version']).status === 0)(
  'systemd knows each setting of the units',
  () => {
    const files = ['petstore.service', 'petstore@.service'].map((name) =>
      path.join(import.meta.dirname, '../../deploy', name),
    )
    const { stderr } = spawnSync('systemd-analyze', ['verify', ...files], { encoding: 'utf8' })
    expect(stderr).not.toMatch(/Unknown|Invalid|Failed to parse/)
  },
)
