/** A terminal that nobody reads, as after Ctrl-S or behind a connection that hangs, stops no process. */
import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { type Program, programs, runProgram } from '../support/process.ts'
import { isListening } from '../support/raw.ts'
import { createKey } from '../support/service.ts'
import { openTerminal } from '../support/terminal.ts'

async function run(program: keyof typeof programs, starter: string[], args: string[] = []) {
  const database = await newDatabase()
  if (program === 'keys') await createKey(database.url)
  const PORT = String(await freePort())
  const variables = { DATABASE_URL: database.url, PORT }
  const started = runProgram(programs[program], variables, args, undefined, starter)
  onTestFinished(async () => {
    await started.end()
    await database.remove()
  })
  return { started, port: Number(PORT), databaseUrl: database.url }
}

/** Fails if a program does not end, by itself or at SIGTERM. */
const endOf = ({ exited }: Program) => Promise.race([exited, until('it ends', () => false, 20_000)])

test('the log at a terminal that nobody reads is kept up to 8 MB; further entries are dropped, and counted', async () => {
  const terminal = await openTerminal()
  const { started, port } = await run('server', terminal.starter(2))
  await until('it listens', () => isListening(port))
  const ask = async (path: string) =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(30_000) })).status
  const path = `/${'x'.repeat(12_000)}`
  for (let round = 0; round < 10; round++) {
    const statuses = await Promise.all(Array.from({ length: 100 }, () => ask(path)))
    expect(new Set(statuses)).toEqual(new Set([404]))
  }
  expect(await ask('/healthz')).toBe(200)
  terminal.read()
  await until('the loss is logged', () => /entries were dropped/.test(terminal.shown))
  started.child.kill('SIGTERM')
  expect(await endOf(started)).toBe(0)
  await until('the last line is shown', () => terminal.shown.includes('Stopped'))
  const lines = stripVTControlCharacters(terminal.shown).split('\n')
  const shown = lines.filter((line) => /INFO: request .*"status":404/.test(line)).length
  expect(shown).toBeGreaterThan(500)
  const dropped = lines.join().matchAll(/entries were dropped \{"entries":(\d+)\}/g)
  const sum = shown + [...dropped].reduce((sum, [, count]) => sum + Number(count), 0)
  expect(sum).toBe(1_000)
})

test('a service whose terminal is full serves, and SIGTERM stops it', async () => {
  const terminal = await openTerminal('full')
  const { started, port } = await run('server', terminal.starter(1, 2))
  await until('it listens', () => isListening(port))
  const { status } = await fetch(`http://127.0.0.1:${port}/readyz`, {
    signal: AbortSignal.timeout(10_000),
  })
  expect(status).toBe(200)
  started.child.kill('SIGTERM')
  expect(await endOf(started)).toBe(0)
})

test('a service whose start fails at a full terminal ends', async () => {
  const terminal = await openTerminal('full')
  const { started } = await run('server', terminal.starter(1, 2), ['--port'])
  expect(await endOf(started)).toBe(1)
})

test.each(['stdout', 'stderr'] as const)(
  'a command whose %s is a full terminal ends at SIGTERM, or once it is read',
  async (stream) => {
    const args = stream === 'stdout' ? ['list'] : ['rotate', '99']
    const start = async () => {
      const terminal = await openTerminal('full')
      const { started } = await run('keys', terminal.starter(stream === 'stdout' ? 1 : 2), args)
      return { terminal, started }
    }
    const stopped = await start()
    const waiting = await start()
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect(stopped.started.child.exitCode).toBe(null)
    stopped.started.child.kill('SIGTERM')
    expect(await endOf(stopped.started)).toBe(143)
    waiting.terminal.read()
    expect(await endOf(waiting.started)).toBe(stream === 'stdout' ? 0 : 1)
    const last =
      stream === 'stdout' ? /LAST USED\s+1 +test .*-\s+$/ : /There is no key to rotate .*\s+$/
    await until('all is shown', () => last.test(terminalText(waiting.terminal.shown)))
  },
)

const terminalText = (shown: string) => stripVTControlCharacters(shown).slice(-300)
