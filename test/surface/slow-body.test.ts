/** A key that is revoked while a body arrives, and a user whose rights change: such a request counts once. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { pass } from '../support/clock.ts'
import { until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { requestText } from '../support/raw.ts'
import { keys, type Service, serviceForFile } from '../support/service.ts'
import { bySession, teamResources } from '../teams/context.ts'

const service = await serviceForFile({ RATE_LIMIT: '9' })
const body = '{"name":"Rex","categoryId":3}'

const editor = { name: 'Ann', holder: 'user Ann', readOnly: false }
/** The user of the session; undefined once it has ended. */
let user: typeof editor | undefined
const authentication = { ...bySession, callerOf: () => user }
const team = await serviceForFile({}, { resources: { ...teamResources, authentication } })

/** Sends a creation, whose caller changes before its last bytes, and returns the answer. */
async function sendSlowly(
  { origin }: Service,
  path: string,
  { key, headers = [] }: { key: string; headers?: string[] },
  change: () => unknown,
): Promise<string> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const expecting = [...headers, 'Expect: 100-continue']
  const asking = requestText(`POST ${path}`, { key, headers: expecting, body })
  socket.write(asking.slice(0, -body.length + 5))
  await once(socket, 'data') // 100 Continue: the caller is known
  await change()
  socket.write(body.slice(5))
  return String((await once(socket, 'data'))[0])
}

test('bodies that are announced, and not sent yet, do not wait for the database', async () => {
  user = editor
  const lines = ['Origin: https://petstore.example', 'Content-Type: application/json']
  const announced = ['Content-Length: 60000', 'Expect: 100-continue']
  const asking = requestText('POST /v1/own/animals', { headers: [...lines, ...announced] })
  // More than the 32 MiB that requests may hold while they wait: see held.once.test.ts
  const answers = Array.from({ length: 600 }, async () => {
    const socket = connect(Number(new URL(team.origin).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(asking)
    return String((await once(socket, 'data'))[0]).split('\r\n', 1)[0]
  })
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 100 Continue']))
})

/** What the log has of a request. */
async function lineOf({ logged }: Service, answer: string) {
  const [, requestId = ''] = /X-Request-Id: (\S+)/.exec(answer) ?? []
  const line = () => logged.find((one) => one.includes(requestId))
  await until('the request is logged', () => line() !== undefined)
  return JSON.parse(line() ?? '')
}

test.for([
  [11_000, true, 401],
  [11_000, false, 201],
  [9_000, true, 201],
] as const)(
  'a body that arrives within %i ms, with a key that is meanwhile revoked (%s), returns %i',
  async ([time, isRevoked, status]) => {
    const { id, key } = await keys.create(service.databaseUrl, 'slow')
    const before = await countPets(service.sql)
    const answer = await sendSlowly(service, '/v1/pets', { key }, async () => {
      if (isRevoked) await keys.revoke(service.databaseUrl, id)
      pass(time)
    })
    expect(answer).toContain(`HTTP/1.1 ${status} `)
    expect(answer).toContain('; r=8;')
    expect(await countPets(service.sql)).toBe(before + (status === 201 ? 1 : 0))
    const { keyId, keyPrefix, address } = await lineOf(service, answer)
    const invalid = { keyPrefix: key.slice(0, 15), address: '127.0.0.1' }
    expect({ keyId, keyPrefix, address }).toEqual(status === 401 ? invalid : { keyId: `${id}` })
  },
)

test.for([
  ['may write on', editor, 200, '"Rex"'],
  ['may now only read', { ...editor, readOnly: true }, 403, 'You may only read'],
  ['signs out, and leaves a key that may only read', undefined, 403, 'The API key may only read'],
] as const)('a body that arrives while its user %s', async ([, changed, status, text]) => {
  const { key } = await keys.create(team.databaseUrl, 'reader', undefined, true)
  const before = await countPets(team.sql)
  user = editor
  const sent = { key, headers: ['Origin: https://petstore.example'] }
  const answer = await sendSlowly(team, '/v1/own/animals', sent, () => {
    user = changed
  })
  expect(answer).toContain(`HTTP/1.1 ${status} `)
  expect(answer).toContain(text)
  expect(await countPets(team.sql)).toBe(before + (status === 200 ? 1 : 0))
  expect((await lineOf(team, answer)).holder).toBe(changed?.holder)
})
