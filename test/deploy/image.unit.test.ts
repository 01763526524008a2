/** The files in deploy/, the Dockerfile and compose, checked without running them. */
import { globSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { SERVICE_FLAGS, SERVICE_PROGRAM, SERVICE_VARIABLES } from '../../bench/service.ts'
import { readConfig } from '../../src/config/config.ts'
import { compose, dockerfile, readRoot, said } from '../support/image.ts'

test('the image has the tested Node version, and does not run as root', () => {
  const [major] = process.versions.node.split('.')
  expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)).toEqual([
    `node:${major}-slim`,
    `node:${major}-slim`,
  ])
  // Kubernetes can tell only of a number that it is not root.
  expect(said(/USER/)).toEqual(['1000'])
  // Another user of group 0 has the rights of the owner, as OpenShift expects.
  expect(said(/RUN/).join()).toMatch(/chown 1000:0 (.+) && chmod g=u \1$/)
})

test('the image starts the service with the options and variables of npm start', () => {
  const command = JSON.parse(said(/CMD/).join())
  expect(command).toEqual(['node', ...SERVICE_FLAGS, SERVICE_PROGRAM])
  expect(Object.fromEntries(said(/ENV/).map((text) => text.split('=')))).toEqual({
    ...SERVICE_VARIABLES,
    NODE_ENV: 'production',
    NODE_COMPILE_CACHE: '/app/node_modules/.cache/node',
  })
})

test('the image has each file that the service imports, and Docker receives it', () => {
  const root = path.join(import.meta.dirname, '../..')
  const copied = said(/COPY(?! --from)/).map((text) => `${text.split(' ')[0]}`)
  const within = (folders: string[], file: string) =>
    folders.some((folder) => file === folder || file.startsWith(`${folder}/`))
  const files = globSync(['src/**/*.ts', 'db/**/*.ts'], { cwd: root })
  expect(files.length).toBeGreaterThan(50)
  for (const file of files) {
    for (const [, name] of readRoot(file).matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
      const imported = path.join(path.dirname(file), `${name}`)
      expect(within(copied, imported), `${file} imports ${imported}`).toBe(true)
    }
  }
  const received = readRoot('.dockerignore')
    .split('\n')
    .flatMap((line) => /^!(.+)/.exec(line)?.[1] ?? [])
  const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names]) =>
    `${names}`.split(' '),
  )
  expect(sources).toEqual(expect.arrayContaining(copied))
  for (const source of sources) expect(within(received, source), source).toBe(true)
})

test('compose sets the database of the service, and a sufficient stop_grace_period', () => {
  const value = (name: string) => new RegExp(`^ *${name}: (\\S+)`, 'm').exec(compose)?.[1]
  const url = new URL(String(value('DATABASE_URL')))
  expect(value('MYSQL_DATABASE')).toBe(url.pathname.slice(1))
  expect(value('MYSQL_USER')).toBe(url.username)
  expect(value('MYSQL_PASSWORD')).toMatch(/^\$\{MYSQL_PASSWORD:-\w+\}$/)
  // Compose puts any password into a variable, but not percent-encoded into a URL.
  expect(value('DATABASE_PASSWORD')).toBe(value('MYSQL_PASSWORD'))
  const read = readConfig({ DATABASE_URL: url.href, DATABASE_PASSWORD: 'a/b#?%' })
  expect(new URL(read.databaseUrl).password).toBe('a%2Fb%23%3F%25')
  expect(url.host).toBe('mysql:3306')
  // Longer than the default SHUTDOWN_TIMEOUT of 10 seconds.
  expect(Number.parseInt(String(value('stop_grace_period')), 10)).toBeGreaterThan(10)
  expect(compose).toMatch(/^ {4}ports:\n {6}- 3000:3000$/m)
})

test('the 503 of HAProxy has the form of an error of the service', () => {
  const [head = '', body = ''] = readRoot('deploy/503.http').split(/\r?\n\r?\n/)
  expect(head.split(/\r?\n/)).toEqual([
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: application/json',
    'Cache-Control: no-store',
    'Retry-After: 5',
  ])
  expect(JSON.parse(body)).toEqual({
    code: 'SERVICE_UNAVAILABLE',
    message: 'The service cannot be reached right now; try again later',
    status: 503,
  })
})
