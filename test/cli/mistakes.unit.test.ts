/** Invalid arguments and variables: one line on stderr, exit code 1, and no secrets. */
import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readArguments } from '../../src/cli/key-arguments.ts'
import { UsageError } from '../../src/config/environment.ts'
import { newFolder } from '../support/database.ts'
import { failToStart, programs, runToEnd } from '../support/process.ts'
import { runFirst, withHooks } from '../support/watched.ts'

const folder = newFolder(afterAll)

const DURATION = 'must be a duration such as 15m, from 1ms to 36525d'
const NO_END =
  'create must have --expires DURATION or --forever, as in npm run keys -- create NAME --expires 90d (npm takes what has no -- before it)'
const ONE_FILE = 'This command takes one FILE, such as backups/monday.db'
const NO_ARGUMENTS = 'This command takes no arguments: remove '

test.each<[words: string[], message: string]>([
  [[], 'COMMAND must be create, list, rotate or revoke'],
  [['create'], 'NAME is required'],
  [
    ['create', 'web', 'shop', '--forever'],
    'create takes no second argument: put quotes around a name',
  ],
  // No-break space, Hangul filler, Braille blank, joiner: they show nothing.
  [['create', ' \u00a0\u3164\u2800\u034f\u200b'], 'NAME must not be blank'],
  [['create', 'x'], NO_END],
  [['create', 'x', '--read-only', '--json'], NO_END],
  [
    ['create', 'x', '--expires', '90d', '--forever'],
    'create takes --expires or --forever, not both',
  ],
  [['create', 'x', '--forever=true'], 'forever takes no value'],
  [['rotate', '1', '--forever'], 'rotate takes no forever'],
  [['create', 'x', '--expires', '90'], `expires ${DURATION}`],
  [['create', 'x', '--expires', '36526d'], `expires ${DURATION}`],
  [['create', 'x', '--expires', '0s'], `expires ${DURATION}`],
  [['create', 'x', '--expires', '-5d'], `expires ${DURATION}`],
  [['create', 'x', '--forever', '--grace', '1h'], 'create takes no grace'],
  [['list', 'x', '--all'], 'list takes no ID,all'],
  [['rotate', '1', '--grace', '24'], `grace ${DURATION.replace('1ms', '0s')}`],
  [['rotate', '1', '--read-only'], 'rotate takes no read-only'],
  [['revoke'], 'ID is missing (see list)'],
  [['revoke', '9'.repeat(19)], 'ID must be that of a key (see list)'],
])('keys %j: %s', (words, message) => {
  expect(() => readArguments(words)).toThrow(new UsageError(`${message}; see --help`))
})

test.each<[program: keyof typeof programs, operands: string[], message: string]>([
  ['keys', [], 'COMMAND must be create, list, rotate or revoke; see --help'],
  [
    'keys',
    ['create', 'x', '--forever', '--if-none', '--key-file', 'x'],
    'Give --if-none or --key-file, not both',
  ],
  [
    'keys',
    ['create', 'x', '--forever', '--key-file', 'missing'],
    "--key-file: ENOENT: no such file or directory, open 'missing'",
  ],
  [
    'keys',
    ['create', 'x', '--forever', '--key-file', '/proc/version'],
    '/proc/version must have petstore_ or petstore_read_ and 32 random bytes in base64url',
  ],
  ['server', ['--port', '4000'], `${NO_ARGUMENTS}--port`],
  ['migrate', ['--dry-run'], `${NO_ARGUMENTS}--dry-run`],
  ['seed', [''], NO_ARGUMENTS],
  ['backup', ['--dry-run'], ONE_FILE],
  ['restore', ['monday.db', 'tuesday.db'], ONE_FILE],
])(
  '%s %j fails with a message of one line, and creates no database',
  async (program, operands, message) => {
    // A collector reads what the server says, a person what a command says.
    if (program === 'server') {
      expect(await failToStart({}, operands, folder)).toEqual({ code: 1, stdout: '', message })
    } else {
      const ended = await runToEnd(programs[program], {}, operands, folder)
      expect(ended).toEqual({ code: 1, stdout: '', stderr: `${message}\n` })
    }
    expect(readdirSync(folder)).toEqual([])
  },
)

test('keys --help needs no configuration', async () => {
  const words = ['create', 'shop', '--help']
  const { code, stdout, stderr } = await runToEnd(programs.keys, { PORT: 'abc' }, words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: npm run keys -- COMMAND \[OPTIONS\]\n/)
})

test.each([
  ['PORT', 'abc', /^PORT must be an integer from 0 to 65535$/],
  ['DATABASE_URL', 'postgres://petstore:sesame@db/petstore', /^DATABASE_URL must be mysql:\/\/.+$/],
  [
    'DATABASE_URL',
    'mysql://petstore:sesame@127.0.0.1:1/petstore',
    /^DATABASE_URL: cannot use the database 127\.0\.0\.1:1\/petstore: .*ECONNREFUSED.*$/,
  ],
  [
    'DATABASE_URL',
    'sqlite:/dev/null/petstore.db?create',
    /^DATABASE_URL: cannot use the database \/dev\/null\/petstore\.db: .+, mkdir '\/dev\/null'$/,
  ],
  [
    'DATABASE_URL',
    `sqlite:${import.meta.filename}`,
    /^DATABASE_URL: cannot use the database .+: the file is damaged \(file is not a database\): restart the service, and if that does not help, restore a backup, .+$/,
  ],
])('%s=%s fails the start: with code 78 if it is wrong by itself', async (name, value, line) => {
  const { code, stdout, message } = await failToStart({ PORT: '0', [name]: value })
  // The supervisor starts it again, unless that cannot help.
  const expected = / must be /.test(`${line}`) ? 78 : 1
  expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
  expect(message).not.toContain('sesame')
  expect(message).toMatch(line)
})

test('a database host that refuses connections at both IP addresses fails the start, with the reason', async () => {
  // The AggregateError of several IP addresses has no message.
  const twoAddresses = `import dns from 'node:dns'
    dns.lookup = (_name, _options, give) =>
      give(null, ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 })))`
  const { code, stderr } = await runToEnd(
    programs.keys,
    {
      DATABASE_URL: 'mysql://petstore:sesame@db:1/petstore',
      ...runFirst(twoAddresses),
    },
    ['list'],
  )
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
  const { level, err } = JSON.parse(stderr)
  expect([level, err.stack]).toEqual(['fatal', expect.stringMatching(/^RangeError: boom\n +at /)])
})

test('a missing database is created only with ?create, and readable by its owner only', async () => {
  const folder = newFolder()
  const run = async (url: string) => {
    const { code, stderr } = await runToEnd(programs.migrate, { DATABASE_URL: url }, [], folder)
    return [code, stderr, readdirSync(folder, { recursive: true }).sort()]
  }
  const missing = `DATABASE_URL: cannot use the database shop/pets.db: the file does not exist; a start with ?create at the end of the URL creates it. The folder is ${folder}, which has no .env\n`
  expect(await run('sqlite:shop/pets.db')).toEqual([1, missing, []])
  expect(await run('sqlite:shop/pets.db?create')).toEqual([0, '', ['shop', 'shop/pets.db']])
  expect(await run('sqlite:shop/pets.db')).toEqual([0, '', ['shop', 'shop/pets.db']])
  // It contains the names and hashes of keys.
  expect(statSync(path.join(folder, 'shop/pets.db')).mode & 0o777).toBe(0o600)
})
