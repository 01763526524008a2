/** The changelog: its form, and a section for each release. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { VERSION } from '../../src/config/product.ts'

const changelog = readFileSync('CHANGELOG.md', 'utf8')
const versionOf = (file: string): string => JSON.parse(readFileSync(file, 'utf8')).version

test('each version has a dated section, newest first, with the headings of Keep a Changelog', () => {
  const titles = [...changelog.matchAll(/^## \[(.+?)\](.*)$/gm)]
  const released = titles.map(([, version, date]) => ({ version, date }))
  if (released[0]?.version === 'Unreleased') expect(released.shift()?.date).toBe('')
  for (const { date } of released) expect(date).toMatch(/^ - \d{4}-\d\d-\d\d$/)
  const dates = released.map(({ date }) => date)
  expect(dates).toEqual(dates.toSorted().reverse())
  const versions = released.map(({ version }) => version)
  expect(versions).toEqual([...new Set(versions)])
  for (const version of [VERSION, versionOf('package.json'), versionOf('client/package.json')]) {
    expect(versions).toContain(version)
  }
  for (const [, heading] of changelog.matchAll(/^### (.+)$/gm)) {
    expect(['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']).toContain(heading)
  }
})
