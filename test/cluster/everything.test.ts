/**
 * Faults of all kinds, in random order, beside valid callers: two instances behind HAProxy, on one
 * MySQL server. `EVERYTHING=600 npm run test:cluster -- everything` runs it for
 * ten minutes; the default is one.
 */
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { ALLOWED_FLAGS, SERVICE_VARIABLES } from '../../bench/service.ts'
import { newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { freePort, startMysql } from '../support/mysql.ts'
import { residentMemory, runServer, type ServerProgram } from '../support/process.ts'
import { proxied } from '../support/proxy.ts'
import { keys } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { sentence } from './deployment.ts'
import { startHaproxy } from './haproxy.ts'
import { startLoad } from './load.ts'
import type { Cluster } from './node.ts'

const SECONDS = Number(process.env.EVERYTHING || 60)

/** Milliseconds within which each request ends: HAProxy may repeat one that waited for its deadline. */
const MAX_WAIT = 30_000

const random = (below: number) => Math.floor(Math.random() * below)

/** The open descriptors and the resident megabytes of a process. */
const sizeOf = (pid: number) => ({
  descriptors: readdirSync(`/proc/${pid}/fd`).length,
  megabytes: residentMemory(pid),
})

test('every request ends, and no acknowledged pet is lost or doubled', {
  timeout: (SECONDS + 120) * 1_000,
}, async () => {
  await using cleanup = new AsyncDisposableStack()
  const mysql = await startMysql()
  cleanup.defer(mysql.remove)
  const { url: direct } = await newDatabase(mysql.url)
  const { proxy, url } = await proxied(direct)
  cleanup.defer(proxy.cut)
  const { key } = await keys.create(direct, 'test')
  const ports = [await freePort(), await freePort()] as const
  const node = { port: Number(new URL(mysql.url).port) }
  const haproxy = await startHaproxy(ports, {
    kind: 'galera',
    nodes: [node, node, node],
  } as unknown as Cluster) // its part for databases is not used
  cleanup.defer(haproxy.stop)
  const start = (index: number) =>
    runServer({
      DATABASE_URL: url,
      PORT: String(ports[index]),
      DATABASE_TIMEOUT: '5s',
      SHUTDOWN_DELAY: '4s',
      TRUST_PROXY: '1',
      // They limit the memory in `npm start`.
      ...SERVICE_VARIABLES,
      NODE_OPTIONS: ALLOWED_FLAGS.join(' '),
    })
  const instances = [await start(0), await start(1)] as [ServerProgram, ServerProgram]
  cleanup.defer(async () => void (await Promise.all(instances.map(({ end }) => end()))))
  for (const app of ['app1', 'app2']) {
    await vi.waitFor(() => expect(haproxy.log).toContain(`${app} is UP`), 30_000)
  }

  const faults: Record<string, () => Promise<unknown>> = {
    async 'rows locked'() {
      const sql = await openSql(direct)
      // A forgotten connection, whose client was killed, keeps its transaction open.
      await sql('set lock_wait_timeout = 5')
      await sql('lock tables pets write').catch(() => {})
      await setTimeout(random(4_000))
      await sql.close()
    },
    async 'database frozen'() {
      await freeze(mysql.pid)
      await setTimeout(random(4_000))
      thaw(mysql.pid)
    },
    async 'database killed'() {
      process.kill(mysql.pid, 'SIGKILL')
      await setTimeout(500)
      await mysql.restart()
    },
    async 'connections forgotten'() {
      proxy.forget()
    },
    async 'connections cut'() {
      await proxy.cut()
      await setTimeout(random(2_000))
      await proxy.mend()
    },
    async 'instance frozen'() {
      const pid = Number(instances[random(2)]?.child.pid)
      await freeze(pid)
      await setTimeout(random(3_000))
      thaw(pid)
    },
    async 'instance killed'() {
      const index = random(2)
      await instances[index]?.end()
      instances[index] = await start(index)
    },
    async 'instance stopped'() {
      const index = random(2)
      expect(await instances[index]?.end('SIGTERM')).toBe(0)
      instances[index] = await start(index)
    },
    async 'slow readers'() {
      const request = `GET /v1/pets?limit=100 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`
      const sockets = Array.from({ length: 50 }, (_, index) =>
        connect(ports[index % 2] as number)
          .on('error', () => {})
          .pause(),
      )
      for (const socket of sockets) socket.write(request.repeat(1 + random(20)))
      await setTimeout(random(4_000))
      for (const socket of sockets) socket.destroy()
    },
  }

  const load = startLoad(haproxy.origin, key)
  await setTimeout(5_000)
  const before = instances.map(({ child }) => sizeOf(Number(child.pid)))
  const end = performance.now() + SECONDS * 1_000
  const names = Object.keys(faults)
  while (performance.now() < end) {
    const name = names[random(names.length)] as string
    load.begin(name)
    // Sometimes two at once.
    const other = random(4) === 0 ? names[random(names.length)] : undefined
    const isPossible = other && !/killed|stopped|frozen|cut/.test(`${name} ${other}`)
    await Promise.all([faults[name]?.(), isPossible && faults[other]?.()])
    await setTimeout(random(3_000))
  }
  // The calls that the last fault delays end at DATABASE_TIMEOUT, by default 5 s.
  load.begin('recovery')
  await setTimeout(7_000)
  load.begin('after')
  await setTimeout(10_000)
  const phases = await load.stop()
  await setTimeout(20_000)
  const after = instances.map(({ child }) => sizeOf(Number(child.pid)))
  for (const phase of phases) console.log(sentence(phase))
  console.log({ before, after, acknowledged: load.acknowledged.size })

  const last = phases.at(-1)?.name
  for (const { name, failures, slowest } of phases) {
    const wrong = Object.keys(failures).filter((failure) => {
      // The first attempt is not over: a killed instance and a forgotten connection keep its lock.
      if (failure === 'createPet with a key: 409') return false
      return name === last || /: (500|4\d\d)$|another pet/.test(failure)
    })
    expect(wrong, name).toEqual([])
    expect(slowest, name).toBeLessThan(MAX_WAIT)
  }
  const sql = await openSql(direct)
  cleanup.defer(sql.close)
  const rows = await sql('select id, name from pets')
  const stored = new Map(rows.map(({ id, name }) => [Number(id), name]))
  const lost = [...load.acknowledged].filter(([id, name]) => stored.get(id) !== name)
  expect(lost, 'lost').toEqual([])
  expect(new Set(stored.values()).size, 'doubled').toBe(rows.length)
  const most = (sizes: ReturnType<typeof sizeOf>[], of: 'descriptors' | 'megabytes') =>
    Math.max(...sizes.map((size) => size[of]))
  expect(most(after, 'descriptors')).toBeLessThan(most(before, 'descriptors') + 20)
  // The heap of a process that has served for minutes is a third larger than after five seconds. A late
  // burst leaves at most what connections may hold (32 MB).
  expect(most(after, 'megabytes')).toBeLessThan(most(before, 'megabytes') * 1.5 + 32)
})
