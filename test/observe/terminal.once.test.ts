/** A terminal that nobody reads, as after Ctrl-S or behind a connection that hangs, stops no process. */
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, type TestContext, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { type Program, programs, runProgram } from '../support/process.ts'
import { isListening } from '../support/raw.ts'
import { createKey } from '../support/service.ts'
import { openTerminal } from '../support/terminal.ts'
import { runFirst } from '../support/watched.ts'

/** The process says on its other stream that one is a terminal that does not take what it writes. */
const tellFull = runFirst(`
  import { writeSync } from 'node:fs'
  const look = setInterval(() => {
    const full = [process.stdout, process.stderr].find((stream) => stream.isTTY && stream.writableLength)
    if (!full) return
    writeSync(3 - full.fd, 'It waits for the terminal')
    clearInterval(look)
  }, 10).unref()`)

async function run(
  { onTestFinished }: TestContext,
  program: keyof typeof programs,
  starter: string[],
  args: string[] = [],
  more: Record<string, string> = {},
) {
  const database = await newDatabase()
  if (program === 'keys') await createKey(database.url)
  const PORT = String(await freePort())
  const variables = { DATABASE_URL: database.url, PORT, ...more }
  const started = runProgram(programs[program], variables, args, undefined, starter)
  onTestFinished(async () => {
    await started.end()
    await database.remove()
  })
  return { started, port: Number(PORT), databaseUrl: database.url }
}

/** Fails if a program does not end, by itself or at SIGTERM. */
const endOf = ({ exited }: Program) => Promise.race([exited, until('it ends', () => false, 20_000)])

// Side by side: they wait for seconds.
describe.concurrent('a terminal that nobody reads', () => {
  test('the log is kept up to 8 MB; further entries are dropped, and counted', async (context) => {
    const terminal = await openTerminal(context)
    const { started, port } = await run(context, 'server', terminal.starter(2))
    await until('it listens', () => isListening(port))
    const ask = async (path: string) =>
      (await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(30_000) }))
        .status
    const path = `/${'x'.repeat(15_000)}`
    for (let round = 0; round < 7; round++) {
      const statuses = await Promise.all(Array.from({ length: 100 }, () => ask(path)))
      expect(new Set(statuses)).toEqual(new Set([404]))
    }
    expect(await ask('/healthz')).toBe(200)
    terminal.read()
    await until('the loss is logged', () => /entries were dropped/.test(terminal.latest))
    started.child.kill('SIGTERM')
    expect(await endOf(started)).toBe(0)
    await until('the last line is shown', () => terminal.latest.includes('Stopped'))
    const lines = stripVTControlCharacters(terminal.shown).split('\n')
    const shown = lines.filter((line) => /INFO: request .*"status":404/.test(line)).length
    expect(shown).toBeGreaterThan(500)
    const dropped = lines.join().matchAll(/entries were dropped \{"entries":(\d+)\}/g)
    const sum = shown + [...dropped].reduce((sum, [, count]) => sum + Number(count), 0)
    expect(sum).toBe(700)
  })

  test('a service whose terminal is full serves, and SIGTERM stops it', async (context) => {
    const terminal = await openTerminal(context, 'full')
    const { started, port } = await run(context, 'server', terminal.starter(1, 2))
    await until('it listens', () => isListening(port))
    const { status } = await fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.timeout(10_000),
    })
    expect(status).toBe(200)
    started.child.kill('SIGTERM')
    expect(await endOf(started)).toBe(0)
  })

  test('a service whose start fails at a full terminal ends', async (context) => {
    const terminal = await openTerminal(context, 'full')
    const { started } = await run(context, 'server', terminal.starter(1, 2), ['--port'])
    expect(await endOf(started)).toBe(1)
  })

  test('a command whose stdout or stderr is a full terminal ends at SIGTERM, or once it is read', async (context) => {
    const start = async (stream: 1 | 2, args: string[]) => {
      const terminal = await openTerminal(context, 'full')
      const { started } = await run(context, 'keys', terminal.starter(stream), args, tellFull)
      await until('it waits', () => /It waits/.test(started.stdout + started.stderr))
      return { terminal, started }
    }
    const writing = await Promise.all(
      (
        [
          [1, ['list'], 0, /LAST USED\s+1 +test .*-\s+$/],
          [2, ['rotate', '99'], 1, /There is no key to rotate .*\s+$/],
        ] as const
      ).map(async ([stream, args, code, last]) => {
        const both = [start(stream, [...args]), start(stream, [...args])] as const
        const [stopped, waiting] = await Promise.all(both)
        return { stopped, waiting, code, last }
      }),
    )
    for (const { stopped, waiting, code, last } of writing) {
      expect(stopped.started.child.exitCode).toBe(null)
      stopped.started.child.kill('SIGTERM')
      expect(await endOf(stopped.started)).toBe(143)
      waiting.terminal.read()
      expect(await endOf(waiting.started)).toBe(code)
      await until('all is shown', () => last.test(terminalText(waiting.terminal.shown)))
    }
  })
})

const terminalText = (shown: string) => stripVTControlCharacters(shown).slice(-300)
