/** The image, built and run by Docker. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, vi } from 'vitest'
import { freePort } from '../support/mysql.ts'
import { docker, inspect, logged, logs, start, withoutDocker } from './docker.ts'
import { trial } from './trial.ts'

/** Runs a trial of the image where there is a Docker engine. */
const imageTrial = (what: string, attempt: () => Promise<string>) =>
  trial(
    `The image: ${what}`,
    async () => {
      const result = await attempt()
      return { version: await docker('version', '--format', '{{.Server.Version}}'), result }
    },
    withoutDocker,
  )

imageTrial('stop', async () => {
  // Before Node handles a signal, and after.
  for (const milliseconds of [0, 300, 5_000]) {
    const name = await start()
    await wait(milliseconds)
    const begin = performance.now()
    await docker('stop', '--time', '30', name)
    const state = await inspect(name, '.State.ExitCode')
    expect(['0', '143'], `after ${milliseconds} ms`).toContain(state)
    expect(performance.now() - begin).toBeLessThan(10_000)
  }
  return 'at any moment of a start'
})

imageTrial('compiled code', async () => {
  const debug = ['--env', 'NODE_DEBUG_NATIVE=COMPILE_CACHE']
  const name = await start([...debug, '--read-only', '--tmpfs', '/app/data:uid=1000'])
  await logged(name, /Petstore is running/)
  const printed = await logs(name)
  expect(printed).toMatch(/V8 code cache for ESM file:\/\/\/app\/src\/main.ts was accepted/)
  expect(printed).not.toMatch(/V8 code cache for .* was rejected/)
  return 'a new container starts with it, read-only, too'
})

imageTrial('users and volumes', async () => {
  const volume = `petstore-${randomBytes(4).toString('hex')}`
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-root-'))
  const [mount, bind] = [volume, folder].map((source) => ['--volume', `${source}:/app/data`])
  onTestFinished(async () => {
    await docker('volume', 'rm', '--force', volume)
    rmSync(folder, { recursive: true })
  })
  const [other, first] = [['--user', '12345:0'], await start(mount)]
  await logged(await start([...other, '--read-only', '--tmpfs', '/tmp']), /is running/) // as OpenShift
  await logged(first, /is running/)
  await docker('rm', '--force', first)
  for (const [options, place, owner, user] of [
    [[...other, ...(mount ?? [])], 'data/petstore.db-wal', '1000 and group 1000', '12345'],
    [bind ?? [], 'data', '0 and group 0', '1000'],
  ] as const) {
    const said = new RegExp(
      `${place} belongs to user ${owner}, and this process is of user ${user}: run chown -R ${user} \\S*data as root`,
    )
    await expect(logged(await start([...options]), /is running/)).rejects.toThrow(said)
    await docker(
      'wait',
      await start(['--user', '0', ...options.slice(-2)], ['chown', '-R', user, 'data']),
    )
    await logged(await start([...options]), /is running/)
  }
  return 'any user of group 0; where a volume is of another user, a message names both'
})

imageTrial('health', async () => {
  const often = ['--health-interval=2s', '--health-timeout=10s']
  const withoutIpv6 = ['--sysctl', 'net.ipv6.conf.all.disable_ipv6=1']
  const containers = await Promise.all([
    ...[[], ['LISTEN_HOST=localhost'], ['LISTEN_HOST=127.0.0.1'], ['PORT=0']].map((variables) =>
      start([...variables.flatMap((variable) => ['--env', variable]), ...often]),
    ),
    start(['--env', 'LISTEN_HOST=::', ...withoutIpv6, ...often]),
  ])
  for (const name of containers) {
    await vi.waitFor(
      async () => expect(await inspect(name, '.State.Health.Status')).toBe('healthy'),
      { timeout: 120_000, interval: 500 },
    )
    expect(await inspect(name, 'json .State.Health.Log')).not.toMatch(/"Output":"[^"]/)
  }
  // A process that hangs.
  const [frozen = ''] = containers
  await docker('exec', '--user', '0', frozen, 'sh', '-c', 'kill -STOP -1')
  await vi.waitFor(
    async () => expect(await inspect(frozen, '.State.Health.Status')).toBe('unhealthy'),
    { timeout: 120_000, interval: 500 },
  )
  return 'is known whatever LISTEN_HOST and PORT are, and checked in silence'
})

imageTrial('the embedded database', async () => {
  const port = await freePort()
  const name = await start(['--publish', `127.0.0.1:${port}:3000`, '--volume', '/app/data'])
  const first = await logged(name, /petstore_[\w-]{43}/)
  // As docs/operating.md says.
  const rotate = ['node', 'src/cli/keys.ts', 'rotate', '1', '--grace', '0s']
  const second = await docker('exec', name, ...rotate)
  const statusWith = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    return (await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers })).status
  }
  expect([await statusWith(second), await statusWith(first)]).toEqual([200, 401])
  expect(await docker('exec', name, 'bin/backup', 'data/backups', '14')).toMatch(/^Backed up to /)
  return 'serves with the first key of the log, which is replaced; makes a backup'
})
