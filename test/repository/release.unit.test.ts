/** What CONTRIBUTING says of a release: the numbers that must agree. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import clientManifest from '../../client/package.json' with { type: 'json' }
import manifest from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import { readRoot } from '../support/image.ts'

/** The sections of the changelog, the newest first: a heading and its text. */
const sections = readRoot('CHANGELOG.md')
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [heading = '', ...lines] = section.split('\n')
    return { heading, text: lines.join('\n').trim() }
  })
const isUnreleased = sections[0]?.heading === '[Unreleased]'
const releases = isUnreleased ? sections.slice(1) : sections
/** The rows of docs/upgrades.md: each with its version and its commit. */
const listed = [...readRoot('docs/upgrades.md').matchAll(/^\| ([\d.]+) \| `([\da-f]{8})` \|/gm)]
const git = (...args: string[]) =>
  spawnSync('git', args, { cwd: path.join(import.meta.dirname, '../..'), encoding: 'utf8' })

test('the newest release of the changelog is the version of the service', () => {
  expect(releases[0]?.heading.split(' - ')[0]).toBe(`[${manifest.version}]`)
  const { '': service, client } = lock.packages
  expect([lock.version, service.version]).toEqual([manifest.version, manifest.version])
  expect(client.version).toBe(clientManifest.version)
})

test('each release of the changelog has a version, a later date than the one before, and a text', () => {
  const heading = /^\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)$/
  const others = releases.filter((release) => !heading.test(release.heading))
  expect(others, 'headings are [Unreleased] first, then [VERSION] - DATE').toEqual([])
  const dates = releases.map((release) => heading.exec(release.heading)?.[1])
  expect(dates).toEqual(dates.toSorted().toReversed())
  expect(sections.filter(({ text }) => text === '')).toEqual([])
})

test('docs/upgrades.md has the commit of each release; the newest is added after it', () => {
  const versions = listed.map(([, version]) => `[${version}]`)
  const released = releases.map(({ heading }) => heading.split(' - ')[0])
  expect([released, released.slice(1)]).toContainEqual(versions)
})

test.for(listed)(
  'the commit of $1 has its version, and the files that the changelog says it added',
  ([, version = '', commit = ''], { skip }) => {
    const { status, stdout } = git('ls-tree', '-r', '--name-only', commit)
    skip(status !== 0, 'the history has no such commit: git fetch --unshallow')
    const has = JSON.parse(git('show', `${commit}:package.json`).stdout)
    expect(has.version).toBe(version)
    const { text = '' } = releases.find(({ heading }) => heading.startsWith(`[${version}]`)) ?? {}
    const named = [...text.matchAll(/`((?:bin|deploy)\/[\w@./-]+\w)`/g)].map(([, name]) => name)
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(named))
  },
)

test.each(['README.md', 'client/README.md', 'examples/storefront/README.md'])(
  '%s names the file of the client package',
  (file) => {
    const names = readRoot(file).match(/petstore-catalogue-petstore-[\d.]+\.tgz/g) ?? []
    expect(names).toContain(`petstore-catalogue-petstore-${clientManifest.version}.tgz`)
    expect(new Set(names).size).toBe(1)
  },
)
