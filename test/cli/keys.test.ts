/** `npm run keys` beside a running service, in scripts, and without a database. */
import { expect, test } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { programs, runToEnd } from '../support/process.ts'
import { serviceForFile } from '../support/service.ts'

// The output of the command does not depend on the engine.
const testOnce = test.runIf(engine === 'sqlite')

const database = await newDatabase()
const service = await serviceForFile({}, { database })

const keys = (operands: string[], url = database.url) =>
  runToEnd(programs.keys, { DATABASE_URL: url }, operands)

const listed = async () =>
  JSON.parse((await keys(['list', '--json'])).stdout) as Record<string, string | number>[]

const statusWith = async (key: string) =>
  (await fetch(`${service.origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

test('a key that is created while the service runs works at once, until it expires', async () => {
  const { stdout } = await keys(['create', 'shop', '--json', '--expires', '1s'])
  const expiring = JSON.parse(stdout)
  const lasting = (await keys(['create', "O'Brien's «shop» 🐶"])).stdout.trim()
  expect(await statusWith(lasting)).toBe(200)
  const made = (await listed()).find(({ id }) => id === expiring.id)
  const left = Date.parse(String(made?.expiresAt)) - Date.now()
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
  expect(await statusWith(expiring.key)).toBe(401)
})

testOnce(
  'rotate has a grace period of a day, or of --grace, and never beyond the expiry of the key',
  async () => {
    const makeAndRotate = async (expires: string[], grace: string[]) => {
      const { id } = JSON.parse((await keys(['create', 'shop', '--json', ...expires])).stdout)
      const began = Date.now()
      const rotated = await keys(['rotate', String(id), '--json', ...grace])
      expect(rotated.code).toBe(0)
      const all = await listed()
      expect(all.find((key) => key.id === JSON.parse(rotated.stdout).id)).toMatchObject({
        name: 'shop',
        state: 'working',
      })
      const end = Date.parse(String(all.find((key) => key.id === id)?.expiresAt))
      return (end - began) / 3_600_000
    }
    const [day, hour, less] = await Promise.all([
      makeAndRotate([], []),
      makeAndRotate([], ['--grace', '1h']),
      makeAndRotate(['--expires', '30m'], ['--grace', '1h']),
    ])
    expect(day).toBeCloseTo(24, 1)
    expect(hour).toBeCloseTo(1, 1)
    expect(less).toBeCloseTo(0.5, 1)
  },
)

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
