/** Invalid arguments and variables: one line on stderr, exit code 1, and no secrets. */
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { newFolder, programs, runToEnd } from '../support/process.ts'
import { runFirst, withHooks } from '../support/watched.ts'

const { folder, remove } = newFolder()
afterAll(remove)

test.each([
  [[], 'A COMMAND is missing: create, list, rotate or revoke; see --help'],
  [['create'], 'create needs a NAME; see --help'],
  [['create', 'web', 'shop'], 'create takes one argument: put quotes around "web shop"'],
  [['create', 'x'.repeat(256)], 'NAME must have at most 255 characters'],
  [
    ['create', 'x', '--expires', '90'],
    '--expires must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "90"',
  ],
  [
    ['create', 'x', '--expires', '36526d'],
    '--expires must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "36526d"',
  ],
  [
    ['create', 'x', '--expires', '0s'],
    '--expires must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "0s"',
  ],
  [['create', 'x', '--grace', '1h'], '--grace is an option of rotate only'],
  [['list', 'x'], 'list takes no argument, but got "x"'],
  [['create', ''], 'create needs a NAME; see --help'],
  // Only spaces, a no-break space, a Hangul filler, a Braille blank, a joiner: all of them show nothing.
  [['create', ' \u00a0\u3164\u2800\u034f\u200b'], 'NAME must not be blank'],
  [['revoke', 'x'], '"x" is not the ID of a key; see list'],
  [['rotate', '9'.repeat(19)], '"9999999999999999999" is not the ID of a key; see list'],
  [['rotate', '1', '--expires', '1h'], '--expires is an option of create only'],
  [
    ['rotate', '1', '--grace', '24'],
    '--grace must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "24"',
  ],
  [['rotate', '1', '--read-only'], '--read-only is an option of create only'],
  [['create', 'x', '--expires', '-5d'], "Option '--expires' argument is ambiguous; see --help"],
  [['list', '--all'], "Unknown option '--all'; see --help"],
])('keys %j fails with a message of one line', async (operands, message) => {
  expect(await runToEnd(programs.keys, {}, operands, folder)).toEqual({
    code: 1,
    stdout: '',
    stderr: `${message}\n`,
  })
})

test.each([
  ['migrate', '--dry-run'],
  ['seed', '--dry-run'],
  ['migrate', ''],
  ['seed', ''],
] as const)('%s takes no argument, such as "%s"', async (program, argument) => {
  expect(await runToEnd(programs[program], {}, [argument], folder)).toEqual({
    code: 1,
    stdout: '',
    stderr: `This command takes no arguments: remove ${argument}\n`,
  })
})

test.each([
  ['backup', []],
  ['backup', ['--dry-run']],
  ['backup', ['']],
  ['restore', ['monday.db', 'tuesday.db']],
] as const)('%s %j fails: it takes one FILE', async (program, operands) => {
  expect(await runToEnd(programs[program], {}, [...operands], folder)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'This command takes one FILE, such as backups/monday.db\n',
  })
})

test.each([[['--help']], [['create', 'shop', '--help']]])(
  'keys %j needs no database',
  async (operands) => {
    const { code, stdout, stderr } = await runToEnd(programs.keys, { PORT: 'abc' }, operands)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(`Usage: npm run keys -- COMMAND [OPTIONS]

  create NAME [--expires 90d] [--read-only]
                                create a key, and print it on stdout, this once
  list                          list all keys, without their secrets; times are UTC
  rotate ID [--grace 24h]       replace a key with one of the same name, lifetime and rights; the old key
                                works until the grace period ends
  revoke ID                     end a key

Options
  --expires DURATION   lifetime of the new key (default: until it is revoked)
  --read-only          the new key may only call operations that change nothing
  --grace DURATION     how long the old key still works (default: 24h; 0s revokes it)
  --json               print JSON on stdout, for scripts
  --help               print this text

A DURATION is a number and a unit, such as 30s, 15m, 24h or 90d.
A revoked key stops working within 10 seconds on every instance.
`)
  },
)

test('an invalid command creates no database', () => {
  expect(existsSync(path.join(folder, 'data'))).toBe(false)
})

test.each([
  ['PORT', 'abc', 'PORT must be an integer from 0 to 65535'],
  [
    'DATABASE_URL',
    'postgres://petstore:sesame@db/petstore',
    'DATABASE_URL must be mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, where the path is that of a file, or empty',
  ],
  [
    'DATABASE_URL',
    'mysql://petstore:sesame@127.0.0.1:1/petstore',
    /^DATABASE_URL: cannot use the database 127\.0\.0\.1:1\/petstore: .*ECONNREFUSED.*$/,
  ],
  [
    'DATABASE_URL',
    'sqlite:/dev/null/petstore.db?create',
    /^DATABASE_URL: cannot use the database \/dev\/null\/petstore\.db: .+$/,
  ],
  [
    'DATABASE_URL',
    'sqlite:nowhere/petstore.db',
    'DATABASE_URL: cannot use the database nowhere/petstore.db: the file does not exist; ?create at the end of the URL creates it',
  ],
  [
    'DATABASE_URL',
    `sqlite:${import.meta.filename}`,
    /^DATABASE_URL: cannot use the database .+: the file is damaged \(file is not a database\): restore a backup, .+$/,
  ],
  [
    'DATABSE_URL',
    'mysql://petstore:sesame@db/petstore',
    'DATABSE_URL is not a variable of this service: did you mean DATABASE_URL?',
  ],
] as const)('%s=%s fails the start', async (name, value, line) => {
  const { code, stdout, stderr } = await runToEnd(programs.server, { PORT: '0', [name]: value })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).not.toContain('sesame')
  expect(stderr).toMatch(/^.+\n$/)
  if (typeof line === 'string') expect(stderr).toBe(`${line}\n`)
  else expect(stderr.trimEnd()).toMatch(line)
})

test('a database host that refuses connections at both IP addresses fails the start, with the reason', async () => {
  // The AggregateError of several IP addresses has no message.
  const twoAddresses = `import dns from 'node:dns'
    dns.lookup = (_name, _options, give) =>
      give(null, ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 })))`
  const { code, stderr } = await runToEnd(programs.server, {
    PORT: '0',
    DATABASE_URL: 'mysql://petstore:sesame@db:1/petstore',
    ...runFirst(twoAddresses),
  })
  expect(code).toBe(1)
  expect(stderr).toBe('DATABASE_URL: cannot use the database db:1/petstore: ECONNREFUSED\n')
})

test('an unexpected error ends a program with code 1, and is shown with its stack', async () => {
  const { code, stdout, stderr } = await runToEnd(programs.server, {
    PORT: '0',
    ...withHooks(`
      if (specifier.endsWith('/start.ts')) throw new RangeError('boom')
      return next(specifier, context)`),
  })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^RangeError: boom\n +at /m)
})

test('an unreadable .env fails the start', async () => {
  const { folder, remove } = newFolder()
  mkdirSync(path.join(folder, '.env'))
  try {
    const { code, stdout, stderr } = await runToEnd(programs.server, { PORT: '0' }, [], folder)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('.env')
    expect(readdirSync(folder)).toEqual(['.env'])
  } finally {
    remove()
  }
})

test('a missing database is created only with ?create', async () => {
  const { folder, remove } = newFolder()
  const run = async (url: string) => {
    const { code } = await runToEnd(programs.migrate, { DATABASE_URL: url }, [], folder)
    return [code, readdirSync(folder, { recursive: true }).sort()]
  }
  try {
    expect(await run('sqlite:pets.db')).toEqual([1, []])
    expect(await run('sqlite:create/pets.db')).toEqual([1, []])
    expect(await run('sqlite:shop/pets.db?create')).toEqual([0, ['shop', 'shop/pets.db']])
    expect(await run('sqlite:shop/pets.db')).toEqual([0, ['shop', 'shop/pets.db']])
    // Readable by its owner only: it contains the names and hashes of keys.
    expect(statSync(path.join(folder, 'shop/pets.db')).mode & 0o777).toBe(0o600)
    expect(await run('')).toEqual([0, ['data', 'data/petstore.db', 'shop', 'shop/pets.db']])
  } finally {
    remove()
  }
})
