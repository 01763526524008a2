/** A key that is revoked while a body arrives. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { pass } from '../support/clock.ts'
import { until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { requestText } from '../support/raw.ts'
import { keys, serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
const body = '{"name":"Rex","categoryId":3}'

test.for([
  [11_000, true, 401],
  [11_000, false, 201],
  [9_000, true, 201],
] as const)(
  'a body that arrives within %i ms, with a key that is meanwhile revoked (%s), returns %i',
  async ([time, isRevoked, status]) => {
    const { id, key } = await keys.create(service.databaseUrl, 'slow')
    const before = await countPets(service.sql)
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    const asking = requestText('POST /v1/pets', { key, headers: ['Expect: 100-continue'], body })
    socket.write(asking.slice(0, -body.length + 5))
    await once(socket, 'data') // 100 Continue: the key has been looked up
    if (isRevoked) await keys.revoke(service.databaseUrl, id)
    pass(time)
    socket.write(body.slice(5))
    const answer = String((await once(socket, 'data'))[0])
    expect(answer).toContain(`HTTP/1.1 ${status} `)
    const [, requestId = ''] = /X-Request-Id: (\S+)/.exec(answer) ?? []
    expect(await countPets(service.sql)).toBe(before + (status === 201 ? 1 : 0))
    const line = () => service.logged.find((one) => one.includes(requestId))
    await until('the request is logged', () => line() !== undefined)
    const { keyId, keyPrefix, address } = JSON.parse(line() ?? '')
    const invalid = { keyPrefix: key.slice(0, 15), address: '127.0.0.1' }
    expect({ keyId, keyPrefix, address }).toEqual(status === 401 ? invalid : { keyId: `${id}` })
  },
)
