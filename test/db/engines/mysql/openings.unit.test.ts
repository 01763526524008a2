/** A MySQL server that accepts connections and says nothing for ten minutes, which pass at once. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import { execute } from '../../../../db/statement.ts'
import { startSilent } from '../../../support/balancer.ts'

/** The connection errors in a row after which a server blocks an address, by default. */
const MAX_CONNECT_ERRORS = 100

const PROCESSES = 4

test('a server that hangs gets few log-ins: the first ones soon, and so few that it blocks nobody', async () => {
  const silent = await startSilent()
  const turn = () => new Promise(setImmediate)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const db = await connect(`mysql://root@127.0.0.1:${silent.port}/pets`, { timeout: 5_000 })
  const begun: number[] = []
  for (let seconds = 0.25; seconds <= 600; seconds += 0.25) {
    for (let call = 0; call < 2; call++) {
      execute(db, db.selectFrom('pets').select('id')).catch(() => {})
    }
    await vi.advanceTimersByTimeAsync(250)
    await turn()
    await turn()
    const sum = silent.clients + silent.closed
    while (begun.length < sum) begun.push(seconds)
  }
  const counted = silent.closed
  await db.destroy()
  const first = begun.filter((time) => time < 10)
  expect(first, 'seconds, within a quarter').toEqual([0.25, 1, 2, 3.5, 5, 8])
  expect(counted).toBe(17)
  expect(counted * PROCESSES).toBeLessThan(MAX_CONNECT_ERRORS)
})
