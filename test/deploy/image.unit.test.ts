/** The files in deploy/, the Dockerfile and compose, checked without running them. */
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { compose, dockerfile, readRoot, said } from '../support/image.ts'

test('the image has the tested Node version, and does not run as root', () => {
  const [major] = process.versions.node.split('.')
  expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)).toEqual([
    `node:${major}-slim`,
    `node:${major}-slim`,
  ])
  expect(said(/USER/)).toEqual(['node'])
  expect(said(/EXPOSE/)).toEqual(['3000'])
  expect(said(/VOLUME/)).toEqual(['/app/data'])
})

test('compose sets the database of the service, and a sufficient stop_grace_period', () => {
  const value = (name: string) => new RegExp(`^ *${name}: (\\S+)`, 'm').exec(compose)?.[1]
  const password = /\$\{MYSQL_PASSWORD:-(\w+)\}/g
  const url = new URL(String(value('DATABASE_URL')?.replace(password, '$1')))
  expect(readConfig({ DATABASE_URL: url.href }).databaseUrl).toBe(url.href)
  expect({
    MYSQL_DATABASE: value('MYSQL_DATABASE'),
    MYSQL_USER: value('MYSQL_USER'),
    MYSQL_PASSWORD: value('MYSQL_PASSWORD')?.replace(password, '$1'),
  }).toEqual({
    MYSQL_DATABASE: url.pathname.slice(1),
    MYSQL_USER: url.username,
    MYSQL_PASSWORD: url.password,
  })
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
