/** A stop during the clean-up of expired Idempotency-Keys. */
import { describe, expect, test, vi } from 'vitest'
import { engine } from '../support/database.ts'
import { running, until } from '../support/instance.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

describe.runIf(engine === 'mysql')('the clean-up', () => {
  test('logs no warning when a stop aborts it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const service = await startService({ DATABASE_TIMEOUT: '1s' })
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables idempotency_keys write')
    vi.advanceTimersByTime(600_000)
    vi.useRealTimers()
    const pattern = 'select%`idempotency_keys`%'
    await until(
      'the clean-up waits',
      async () => (await running(service.sql, pattern)).length === 1,
    )
    const stopped = service.stop()
    await until('the service has stopped', () =>
      service.logged.some((line) => line.includes('"Stopped"')),
    )
    await locker.close()
    await stopped
    // A clean-up that continues would log its error by then.
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(service.logged.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
  })
})
