/** A MySQL server that hangs for a minute under load. `FROZEN=600` makes it ten minutes. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startLoad } from '../cluster/load.ts'
import { newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { until } from '../support/instance.ts'
import { startMysql } from '../support/mysql.ts'
import { runServer } from '../support/process.ts'
import { proxied } from '../support/proxy.ts'
import { createKey } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

const SECONDS = Number(process.env.FROZEN || 60)

/** Servers never block the addresses 127.0.0.1 and ::1. */
const CLIENT = '127.77.0.1'

test('the server blocks nobody, and no pet is lost or doubled', {
  timeout: (SECONDS + 120) * 1_000,
}, async () => {
  await using cleanup = new AsyncDisposableStack()
  const mysql = await startMysql(['--max-connect-errors=20'])
  cleanup.defer(mysql.remove)
  const { url: direct } = await newDatabase(mysql.url)
  const sql = await openSql(direct)
  cleanup.defer(sql.close)
  await sql("create user shop@'%'")
  await sql("grant all on *.* to shop@'%'")
  const key = await createKey(direct)
  const { proxy, url } = await proxied(
    Object.assign(new URL(direct), { username: 'shop' }).href,
    CLIENT,
  )
  cleanup.defer(proxy.cut)
  const service = await runServer({ DATABASE_URL: url, DATABASE_TIMEOUT: '2s' })
  cleanup.defer(async () => {
    service.child.kill()
    await service.exited
  })
  const load = startLoad(service.origin, key)
  await setTimeout(3_000)

  const opened = proxy.opened
  await freeze(mysql.pid)
  load.begin('frozen')
  await setTimeout(SECONDS * 1_000)
  // The pauses between log-ins double up to a minute, and each log-in is waited for for a minute.
  expect(proxy.clients, 'few are being opened').toBeLessThanOrEqual(10)
  expect(proxy.opened - opened, 'few were').toBeLessThanOrEqual(10 + SECONDS / 60)
  const before = load.acknowledged.size
  thaw(mysql.pid)
  const start = performance.now()
  await until('it serves again', () => load.acknowledged.size > before + 50, 10_000)
  const recovery = Math.round(performance.now() - start)
  load.begin('after')
  await setTimeout(3_000)
  const phases = await load.stop()
  console.info({ recovery, phases, acknowledged: load.acknowledged.size })

  expect(phases.at(-1)?.failures).toEqual({})
  const rows = await sql('select id, name from pets')
  const stored = new Map(rows.map(({ id, name }) => [Number(id), name]))
  expect(
    [...load.acknowledged].filter(([id, name]) => stored.get(id) !== name),
    'lost',
  ).toEqual([])
  expect(new Set(stored.values()).size, 'doubled').toBe(rows.length)
})
