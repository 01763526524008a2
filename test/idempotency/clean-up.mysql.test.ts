/** A stop in the middle of a round of cleaning. */
import { describe, expect, test, vi } from 'vitest'
import { engine } from '../support/database.ts'
import { running, until } from '../support/instance.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

describe.runIf(engine === 'mysql')('a round of cleaning', () => {
  test('that is given up after a stop has begun is no warning', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const service = await startService({ DATABASE_TIMEOUT: '1s' })
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables idempotency_keys write')
    vi.advanceTimersByTime(600_000)
    vi.useRealTimers()
    const pattern = 'select%`idempotency_keys`%'
    await until('it waits', async () => (await running(service.sql, pattern)).length === 1)
    const stopped = service.stop()
    await until('it has ended', () => service.logged.some((line) => line.includes('"Stopped"')))
    await locker.close()
    await stopped
    await new Promise((resolve) => setTimeout(resolve, 50)) // what goes on would be told by now
    expect(service.logged.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
  })
})
