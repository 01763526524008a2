/** The message to systemd that the service is ready. test/world/systemd.test.ts has a real systemd. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase, newFolder } from '../support/database.ts'
import { until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { runServer } from '../support/process.ts'

/** Starts the service with this script as the program systemd-notify, or without one. */
async function start(script: string | undefined, variables: Record<string, string>) {
  const folder = newFolder()
  const database = await newDatabase()
  onTestFinished(database.remove)
  const program = path.join(folder, 'systemd-notify')
  if (script !== undefined) {
    writeFileSync(program, `#!/bin/sh\n${script}\n`)
    chmodSync(program, 0o755)
  }
  const server = await runServer({ DATABASE_URL: database.url, PATH: folder, ...variables }, folder)
  onTestFinished(async () => void (await server.end()))
  return { folder, server }
}

const warnings = ({ entries }: Awaited<ReturnType<typeof runServer>>) =>
  entries().filter(({ level }) => level === 'warn')

test('where NOTIFY_SOCKET is set, the service calls systemd-notify --ready once it listens', async () => {
  const PORT = `${await freePort()}`
  const ask = `fetch('http://127.0.0.1:${PORT}/readyz').then(({ status }) => console.log(status))`
  const script = `echo "$@" "$NOTIFY_SOCKET" > asked; ${process.execPath} -e "${ask}" >> asked
    /bin/mv asked told`
  const { folder, server } = await start(script, { PORT, NOTIFY_SOCKET: '/run/systemd/notify' })
  const told = path.join(folder, 'told')
  await until('systemd is told', () => existsSync(told))
  expect(readFileSync(told, 'utf8')).toBe('--ready /run/systemd/notify\n200\n')
  expect(await server.end('SIGTERM')).toBe(0)
  expect(warnings(server)).toEqual([])
})

test('without NOTIFY_SOCKET, it calls nothing', async () => {
  const { folder, server } = await start('echo "$@" >> told', {})
  expect(await server.end('SIGTERM')).toBe(0)
  expect(existsSync(path.join(folder, 'told'))).toBe(false)
})

test.each([
  ['is missing', undefined, 'spawn systemd-notify ENOENT'],
  ['fails', 'echo no socket >&2; exit 1', 'Command failed: systemd-notify --ready\nno socket\n'],
])('a systemd-notify that %s is one warning, and ends nothing', async (_, script, message) => {
  const { server } = await start(script, { NOTIFY_SOCKET: '/run/systemd/notify' })
  await server.logged(/systemd-notify/)
  expect((await fetch(`${server.origin}/readyz`)).status).toBe(200)
  expect(await server.end('SIGTERM')).toBe(0)
  expect(warnings(server)).toEqual([
    expect.objectContaining({ err: expect.objectContaining({ message }) }),
  ])
})
