/** `npm run keys` beside a running service, in scripts, and without a database. */
import { expect, test } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { programs, runToEnd } from '../support/process.ts'
import { serviceForFile } from '../support/service.ts'

const database = await newDatabase()
const service = await serviceForFile({}, { database })

const keys = (operands: string[], url = database.url) =>
  runToEnd(programs.keys, { DATABASE_URL: url }, operands)

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

test('a key that is created while the service runs works at once, until it expires', async () => {
  const { stdout } = await keys(['create', 'shop', '--json', '--expires', '1s'])
  const expiring = JSON.parse(stdout)
  const lasting = (await keys(['create', "O'Brien's «shop» 🐶"])).stdout.trim()
  expect(await statusWith(lasting)).toBe(200)
  const all: { id: number; expiresAt?: string }[] = JSON.parse(
    (await keys(['list', '--json'])).stdout,
  )
  const made = all.find(({ id }) => id === expiring.id)
  const left = Date.parse(String(made?.expiresAt)) - Date.now()
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
  expect(await statusWith(expiring.key)).toBe(401)
})

test('--json prints JSON on stdout, or nothing on stdout and an error on stderr', async () => {
  const { id } = JSON.parse((await keys(['create', 'shop', '--json'])).stdout)
  expect(await keys(['revoke', String(id), '--json'])).toEqual({
    code: 0,
    stdout: `{"id":${id}}\n`,
    stderr: `Key ${id} stops working within 10 seconds\n`,
  })
  expect(await keys(['revoke', String(id), '--json'])).toEqual({
    code: 1,
    stdout: '',
    stderr: `There is no working key with the ID ${id}; see list\n`,
  })
})

test('an unavailable database prints one line without the password', async () => {
  const urls = [
    'mysql://petstore:sesame@127.0.0.1:1/petstore',
    'mysql://petstore:sesame@nowhere.invalid/petstore',
    'sqlite:/dev/null/petstore.db?create',
    'sqlite:nowhere/petstore.db',
    `sqlite:${import.meta.filename}`,
  ]
  const changed = (change: object) => Object.assign(new URL(database.url), change).href
  const ofServer = () => [
    changed({ pathname: '/nothing' }),
    changed({ username: 'who', password: 'sesame' }),
  ]
  const ended = await Promise.all(
    (engine === 'mysql' ? ofServer() : urls).map((url) => keys(['create', 'shop', '--json'], url)),
  )
  for (const { code, stdout, stderr } of ended) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^DATABASE_URL: cannot use the database [^\n]+\n$/)
    expect(stderr).not.toContain('sesame')
  }
})
