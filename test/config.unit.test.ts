/** The environment → Config. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { ConfigError, readConfig } from '../src/config.ts'

const defaults = {
  port: 3000,
  databaseUrl: 'sqlite:data/petstore.db',
  baseUrl: 'http://localhost:3000/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

test('an empty environment gives the defaults, and so do empty variables', () => {
  expect(readConfig({})).toMatchObject(defaults)
  const names = [
    'PORT',
    'DATABASE_URL',
    'BASE_URL',
    'STAGING_URL',
    'CORS_ORIGINS',
    'RATE_LIMIT',
    'TRUST_PROXY',
  ]
  expect(readConfig(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(readConfig({}))
})

test('.env.example shows the defaults', () => {
  const example = readFileSync('.env.example', 'utf8')
  expect(readConfig(parseEnv(example))).toEqual(readConfig({}))
})

test('BASE_URL follows PORT unless it is set', () => {
  expect(readConfig({ PORT: '8080' })).toMatchObject({
    port: 8080,
    baseUrl: 'http://localhost:8080/v1',
  })
  const baseUrl = 'https://petstore.example/shop/v1'
  expect(readConfig({ PORT: '8080', BASE_URL: baseUrl })).toMatchObject({ baseUrl })
})

test.each(['0', '1', '65535'])('PORT=%s', (PORT) => {
  expect(readConfig({ PORT }).port).toBe(Number(PORT))
})

test.each([
  'mysql://root@localhost/petstore',
  'mysql://user:p%40ss@db.example:3307/petstore',
  'mysql://user:secret@[::1]:3306/petstore',
  'sqlite:petstore.db',
  'sqlite:/var/lib/petstore/petstore.db',
])('DATABASE_URL=%s', (DATABASE_URL) => {
  expect(readConfig({ DATABASE_URL }).databaseUrl).toBe(DATABASE_URL)
})

const url = 'an http or https address that ends in /v1'
const database =
  'mysql://user:password@host:3306/database (special characters percent-encoded), or sqlite:path, or empty'
const wrong: [name: string, value: string, expected: string][] = [
  ...['abc', '-1', '65536', '3000.5', ' 3000', '0x50', '1e3', '999999'].map(
    (value): [string, string, string] => ['PORT', value, 'a whole number from 0 to 65535'],
  ),
  ...[
    'postgres://user:secret@host/petstore',
    'mysql:secret',
    'mysql://user:secret@host',
    'mysql://user:secret@host/',
    'mysql://user:sec#ret@host/petstore',
    'secret',
    'sqlite:',
    '/data/petstore.db',
  ].map((value): [string, string, string] => ['DATABASE_URL', value, database]),
  ...['BASE_URL', 'STAGING_URL'].flatMap((name) =>
    [
      'https://petstore.example',
      'https://petstore.example/v1/',
      'https://petstore.example/v2',
      'https://petstore.example/?/v1',
      'https://petstore.example/#/v1',
      'https://petstore.example/xv1',
      'ftp://petstore.example/v1',
      'petstore.example/v1',
      '/v1',
    ].map((value): [string, string, string] => [name, value, url]),
  ),
]

test.each(wrong)('%s=%s is refused, and told how it should be', (name, value, expected) => {
  const read = () => readConfig({ [name]: value })
  expect(read).toThrow(ConfigError)
  expect(read).toThrow(new RegExp(`^${name} must be ${RegExp.escape(expected)}$`))
})
