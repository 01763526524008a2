/** `npm run keys`, beside a running service. */
import { createHash } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { engine, newDatabase, newFolder, placeOf, testOnce } from '../support/database.ts'
import { programs, runToEnd } from '../support/process.ts'
import { serviceForFile } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

const database = await newDatabase()
const service = await serviceForFile({}, { database })
const { sql } = service

const keys = (...operands: string[]) =>
  runToEnd(programs.keys, { DATABASE_URL: database.url }, operands)

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

const place = placeOf(database.url)

test('create prints only the key on stdout, which works at once, and stores the name and the expiry', async () => {
  // 255 characters, many of which have length 2 in JavaScript.
  const name = ` ${'🐶'.repeat(251)}  x`
  const before = Date.now()
  const { stdout, stderr } = await keys('create', name, '--expires', '90d')
  const after = Date.now()
  expect(stdout).toMatch(/^petstore_[\w-]{43}\n$/)
  const key = stdout.trim()
  expect(await statusWith(key)).toBe(200)
  expect(stderr).toBe(`Key 2 of ${place} is on stdout. Keep it: it is not shown again.\n`)
  const [row = {}] = await sql('select * from api_keys where id = 2')
  const [createdAt, expiresAt] = [Number(row.created_at), Number(row.expires_at)]
  expect(createdAt).toBeGreaterThanOrEqual(before)
  expect(createdAt).toBeLessThanOrEqual(after)
  expect(expiresAt - createdAt).toBe(90 * 86_400_000)
  expect(row).toEqual({
    id: 2n,
    name,
    prefix: key.slice(0, 15),
    hash: createHash('sha256').update(key).digest('hex'),
    created_at: BigInt(createdAt),
    expires_at: BigInt(expiresAt),
    revoked_at: null,
    last_used_at: expect.toBeOneOf([null, expect.any(BigInt)]),
    read_only: 0n,
    grace_until: null,
    holder: expect.any(BigInt),
  })
})

testOnce(
  'rotate and revoke end a key that works, and --json prints JSON alone on stdout',
  async () => {
    const rotated = await keys('rotate', '2', '--json')
    expect(JSON.parse(rotated.stdout)).toEqual({ id: 3, key: expect.stringMatching(/^petstore_/) })
    const [times] = await sql(
      `select new.created_at as created, old.grace_until as ends from api_keys old, api_keys new
     where old.id = 2 and new.id = 3`,
    )
    expect(Number(times?.ends) - Number(times?.created)).toBeCloseTo(86_400_000, -5) // a day, by default
    expect((await keys('rotate', '3', '--grace', '0s')).code).toBe(0)
    expect(await keys('revoke', '4', '--json')).toEqual({
      code: 0,
      stdout: '{"id":4}\n',
      stderr: 'Key 4 stops working within 10 seconds\n',
    })
    const revoked = await sql('select id from api_keys where revoked_at is not null order by id')
    expect(revoked).toEqual([{ id: 3n }, { id: 4n }])
    // Never created; test/keys/store.test.ts has expired and revoked ones.
    for (const [action = '', id = ''] of [
      ['rotate', '99'],
      ['revoke', '9223372036854775807'],
    ]) {
      const stderr = `There is no key to ${action} with the ID ${id}; see list\n`
      expect(await keys(action, id, '--json')).toEqual({ code: 1, stdout: '', stderr })
    }
  },
)

// test/keys/store.test.ts has concurrent calls.
testOnce('--if-none creates a key where there never was one', async () => {
  const fresh = await newDatabase()
  onTestFinished(fresh.remove)
  const create = () =>
    runToEnd(programs.keys, { DATABASE_URL: fresh.url }, [
      ...['create', 'first key', '--forever', '--if-none'],
    ])
  expect((await create()).stdout).toMatch(/^petstore_[\w-]{43}\n$/)
  const place = placeOf(fresh.url)
  const revoke = await runToEnd(programs.keys, { DATABASE_URL: fresh.url }, ['revoke', '1'])
  expect(revoke.code).toBe(0)
  expect(await create()).toEqual({
    code: 0,
    stdout: '',
    stderr: `${place} has API keys, so none was created\n`,
  })
})

test('no other command takes a database without tables of the service, and each leaves it as it is', async () => {
  const folder = newFolder()
  const fresh = await newDatabase()
  onTestFinished(fresh.remove)
  const place = placeOf(fresh.url)
  const run = (words: string[], url = fresh.url) =>
    runToEnd(programs.keys, { DATABASE_URL: url }, words, folder)
  const refusal = (why: string, file: string) => ({
    code: 1,
    stdout: '',
    stderr: `DATABASE_URL: cannot use the database ${why} The folder is ${folder}, ${file}\n`,
  })
  const noTables = `${place}: it has no tables of the service, which its start creates.`
  expect(await run(['rotate', '1'])).toEqual(refusal(noTables, 'which has no .env'))
  await using sql = await openSql(fresh.url)
  await sql('create table pets (id bigint)')
  writeFileSync(path.join(folder, '.env'), '')
  expect(await run(['revoke', '1'])).toEqual(refusal(noTables, 'whose .env was read'))
  await expect(sql('select * from api_keys')).rejects.toThrow()
  if (engine === 'mysql') return
  const noFile =
    'data/x.db: the file does not exist; a start with ?create at the end of the URL creates it.'
  const refused = await run(['list'], 'sqlite:data/x.db?create')
  expect(refused).toEqual(refusal(noFile, 'whose .env was read'))
  expect(readdirSync(folder)).toEqual(['.env'])
})

testOnce.each([['petstore_'], ['petstore_read_', '--read-only']])(
  '--key-file brings a key that begins with %s, again and again, until it is revoked',
  async (start, ...options) => {
    const folder = newFolder()
    const file = path.join(folder, 'api-key')
    const bring = (...options: string[]) =>
      keys('create', 'declared', '--forever', '--key-file', file, ...options)
    const key = `${start}${'aB-_9'.repeat(8)}${options.length}xy`
    writeFileSync(file, `${key}\n`)
    if (options.length === 0)
      expect(await bring('--read-only')).toEqual({
        code: 1,
        stdout: '',
        stderr: `The key in ${file} must begin with petstore_read_ to be read-only\n`,
      })
    const first = await bring(...options)
    const [, id = ''] = /^Key (\d+) /.exec(first.stderr) ?? []
    const said = `Key ${id} of ${place} is the one in ${file}\n`
    expect(first).toEqual({ code: 0, stdout: '', stderr: said })
    expect(await statusWith(key)).toBe(200)
    const [row] = await sql('select name, prefix, read_only from api_keys where id = ?', [
      BigInt(id),
    ])
    const prefix = `${start}aB-_9a`
    expect(row).toEqual({ name: 'declared', prefix, read_only: BigInt(options.length) })
    if (options.length > 0) return
    expect(await bring()).toEqual(first)
    expect((await bring('--json')).stdout).toBe(`{"id":${id}}\n`)
    await keys('revoke', id)
    expect(await bring()).toEqual({
      code: 1,
      stdout: '',
      stderr: `The key in ${file} is revoked: bring another one\n`,
    })
  },
)

test('list shows all fields of each key, and never the key itself', async () => {
  const made = '2026-01-02T03:04:05.678Z'
  const past = '2026-02-03T04:05:06.789Z'
  const [far, farther] = ['2997-06-07T08:09:10.111Z', '2998-12-31T00:00:00.000Z']
  const used = '2026-01-31T22:21:20.019Z'
  // id, name, expires_at, grace_until, revoked_at, last_used_at, read_only; and the expected state and end.
  const all = [
    ['3', 'plain', null, null, null, null, 0, 'working', undefined],
    ['4', 'in use', far, null, null, used, 0, 'working', far],
    ['5', 'expired', past, null, null, null, 0, 'expired', past],
    ['6', 'revoked', null, null, past, used, 0, 'revoked', undefined],
    ['7', 'revoked before its end', far, null, past, null, 0, 'revoked', far],
    ['8', 'revoked ahead of time', null, null, far, null, 0, 'revoked', undefined],
    ['9', 'in its grace', farther, far, null, null, 0, 'working', far],
    ['10', 'in a grace beyond its end', far, farther, null, null, 0, 'working', far],
    ['11', 'after its grace', null, past, null, null, 0, 'expired', past],
    [
      '12',
      'reader',
      '+275760-09-13T00:00:00.000Z',
      null,
      null,
      '-271821-04-20T00:00:00.000Z',
      1,
      'working',
      '+275760-09-13T00:00:00.000Z',
    ],
    ['9007199254740993', 'two\nlines \u202eback', null, null, null, null, 0, 'working', undefined],
  ] as const
  await sql('delete from api_keys')
  const time = (text: string | null) => (text === null ? null : Date.parse(text))
  const prefix = (isReader: unknown) => (isReader ? 'petstore_read_aB-_09' : 'petstore_aB-_09')
  // Inserted in reverse order: the list is ordered by id, not by insertion.
  for (const [id, name, expires, grace, revoked, lastUsed, readOnly] of all.toReversed()) {
    await sql(
      `insert into api_keys (id, name, prefix, hash, created_at, expires_at, grace_until, revoked_at,
         last_used_at, read_only) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[BigInt(id), name, prefix(readOnly), id.padStart(64, '0'), time(made)],
        ...[time(expires), time(grace), time(revoked), time(lastUsed), readOnly],
      ],
    )
  }
  // Beyond any Date.
  await sql('update api_keys set expires_at = ?, last_used_at = ? where id = 12', [
    2n ** 63n - 1n,
    -(2n ** 63n),
  ])
  const json = await keys('list', '--json')
  const expected = all.map(([id, name, , , revokedAt, lastUsedAt, readOnly, state, expiresAt]) => ({
    id: JSON.rawJSON(id),
    name,
    prefix: prefix(readOnly),
    state,
    readOnly: readOnly === 1,
    createdAt: made,
    ...(expiresAt && { expiresAt }),
    ...(revokedAt && { revokedAt }),
    ...(lastUsedAt && { lastUsedAt }),
  }))
  expect(json.stdout).toBe(`${JSON.stringify(expected)}\n`)
  if (engine === 'mysql') return // the table is made of the same fields
  expect(await keys('list')).toEqual({
    code: 0,
    stderr: '',
    stdout: `\
ID                NAME                        KEY                    STATE    MAY          CREATED (UTC)     EXPIRES              LAST USED
3                 plain                       petstore_aB-_09…       working  read, write  2026-01-02 03:04  -                    -
4                 in use                      petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09     2026-01-31 22:21
5                 expired                     petstore_aB-_09…       expired  read, write  2026-01-02 03:04  2026-02-03 04:05     -
6                 revoked                     petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  -                    2026-01-31 22:21
7                 revoked before its end      petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  2997-06-07 08:09     -
8                 revoked ahead of time       petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  -                    -
9                 in its grace                petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09     -
10                in a grace beyond its end   petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09     -
11                after its grace             petstore_aB-_09…       expired  read, write  2026-01-02 03:04  2026-02-03 04:05     -
12                reader                      petstore_read_aB-_09…  working  read         2026-01-02 03:04  +275760-09-13 00:00  -271821-04-20 00:00
9007199254740993  two\\u{a}lines \\u{202e}back  petstore_aB-_09…       working  read, write  2026-01-02 03:04  -                    -
`,
  })
})

testOnce(
  'list ends in silence when its reader wants no more, and create says that the key is lost',
  async () => {
    const toNobody = ['sh', '-c', '{ "$@"; echo "code $?" >&2; } | true', 'sh']
    const run = async (...operands: string[]) => {
      const variables = { DATABASE_URL: database.url }
      const { stderr } = await runToEnd(programs.keys, variables, operands, undefined, toNobody)
      return stderr
    }
    expect(await run('list')).toBe('code 0\n')
    expect(await run('create', 'lost', '--forever')).toMatch(
      /EPIPE.* is lost: revoke it\ncode 1\n$/,
    )
  },
)
