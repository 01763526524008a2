/** Log-ins with a MySQL server that accepts connections and says nothing, for minutes that pass at once. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import { type Opening, Openings } from '../../../../db/engines/mysql/openings.ts'
import { execute } from '../../../../db/statement.ts'
import { startSilent } from '../../../support/balancer.ts'

/** The connection errors in a row after which a server blocks an address, by default. */
const MAX_CONNECT_ERRORS = 100

const PROCESSES = 4

/** Milliseconds, as in session.ts. */
const LOG_IN_TIMEOUT = 60_000

test('a server that hangs gets a second log-in soon, and then one a minute: also a process that starts again and again is not blocked', async () => {
  const silent = await startSilent()
  const turn = () => new Promise(setImmediate)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const db = await connect(`mysql://root@127.0.0.1:${silent.port}/pets`, { timeout: 5_000 })
  const begun: number[] = []
  for (let seconds = 0.25; seconds <= 150; seconds += 0.25) {
    for (let call = 0; call < 2; call++) {
      execute(db, db.kysely.selectFrom('pets').select('id')).catch(() => {})
    }
    await vi.advanceTimersByTimeAsync(250)
    await turn()
    await turn()
    const sum = silent.clients + silent.closed
    while (begun.length < sum) begun.push(seconds)
  }
  await db.destroy()
  expect(begun.slice(0, 4).map(Math.floor), 'seconds').toEqual([0, 1, 61, 121])
  const inMinute = begun.filter((time) => time <= 60).length
  expect(inMinute * 10 * PROCESSES).toBeLessThan(MAX_CONNECT_ERRORS)
})

test('a server that hangs after it has answered gets the first log-ins sooner, and still too few to block', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const openings = new Openings()
  const first = openings.begin()
  openings.answered(first)
  openings.ended(first)
  vi.advanceTimersByTime(5_000)
  const start = performance.now()
  const secondsOf = (time: number) => (time - start) / 1_000
  const begun: Opening[] = []
  let counted = 0
  while (secondsOf(performance.now()) < 600) {
    for (const opening of begun) {
      // After a minute, the client ends it, and the server counts that.
      if (performance.now() - opening.beganAt === LOG_IN_TIMEOUT) {
        openings.ended(opening)
        openings.failed(new Error('The server does not answer'), false)
        counted++
      }
    }
    if (performance.now() >= openings.nextAt) begun.push(openings.begin())
    vi.advanceTimersByTime(250)
  }
  const times = begun.map(({ beganAt }) => secondsOf(beganAt))
  expect(times.slice(0, 10)).toEqual([0, 1, 2, 3.5, 5, 8, 14, 26, 50, 98])
  expect(counted).toBe(17)
  expect(counted * PROCESSES).toBeLessThan(MAX_CONNECT_ERRORS)
})

test('an accepted log-in ends the long pauses after those that were refused', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const openings = new Openings()
  const refuse = () => {
    openings.failed(Object.assign(new Error('Access denied'), { errno: 1045 }), false)
    return openings.nextAt - performance.now()
  }
  expect([refuse(), refuse(), refuse(), refuse(), refuse()]).toEqual(
    [1, 2, 4, 8, 16].map((seconds) => seconds * 1_000),
  )
  vi.advanceTimersByTime(600_000)
  const accepted = openings.begin()
  openings.answered(accepted)
  openings.ended(accepted)
  expect(refuse()).toBe(1_000)
})
