/** The programs of the service as processes, started as an operator starts them. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import './compile-cache.ts'

const root = path.join(import.meta.dirname, '../..')

// Vitest ends its workers by SIGTERM, at which Node emits no 'exit', so their programs would stay.
process.once('SIGTERM', () => process.exit(143))

/** The default DATABASE_TIMEOUT of tests: 5 seconds are too short for a busy machine. */
export const DATABASE_TIMEOUT = '30s'

/** The programs of this repository, by their purpose. */
export const programs = {
  server: 'src/main.ts',
  keys: 'src/cli/keys.ts',
  migrate: 'src/cli/migrate.ts',
  seed: 'src/cli/seed.ts',
  backup: 'src/cli/backup.ts',
  restore: 'src/cli/restore.ts',
  openapi: 'src/cli/openapi.ts',
  health: 'src/cli/health.ts',
} as const

/** A line of the log. */
export type LogEntry = Record<string, unknown>

/** A process of a program of this repository. */
export type Program = ReturnType<typeof runProgram>

/** A running server. */
export interface ServerProgram extends Program {
  origin: string
  port: number
}

/**
 * Runs a program with only these variables of the service, in an empty folder, so that neither
 * an `.env` file nor a `data` folder of this checkout is used. `folder` keeps files for a restart.
 * `starter` is a command that starts another one, such as `prlimit`.
 */
export function runProgram(
  program: string,
  variables: Record<string, string> = {},
  args: string[] = [],
  folder?: string,
  starter: readonly string[] = [],
) {
  const cwd = folder ?? mkdtempSync(path.join(tmpdir(), 'petstore-run-'))
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env
  const [command = '', ...rest] = [...starter, process.execPath, path.join(root, program), ...args]
  const child = spawn(command, rest, {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (output.stdout += chunk))
  child.stderr.on('data', (chunk) => (output.stderr += chunk))
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'close').then(([code]) => {
    process.off('exit', kill)
    if (!folder) rmSync(cwd, { recursive: true, force: true })
    return code as number | null
  })
  return {
    child,
    /** Its output so far. */
    get stdout() {
      return output.stdout
    },
    get stderr() {
      return output.stderr
    },
    /** Waits for the first line of the log that matches. */
    async logged(pattern: RegExp) {
      const find = () => output.stderr.split('\n').find((line) => pattern.test(line))
      for (;;) {
        const line = find()
        if (line !== undefined) return line
        await once(child.stderr, 'data')
      }
    },
    /** The entries of the log so far. Throws if a line is not JSON. */
    entries: (): LogEntry[] =>
      output.stderr
        .slice(0, output.stderr.lastIndexOf('\n') + 1)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    /** Its exit code after it has ended; null after a signal. */
    exited,
    /** Ends it by a signal, and returns its exit code. */
    end(signal: NodeJS.Signals = 'SIGKILL') {
      child.kill(signal)
      return exited
    },
  }
}

/** Whether strace is there, and may trace. */
export const mayTrace = (): boolean => spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

/**
 * The starter of a program that writes to `file` which names it gives and removes, and what it has written to the
 * disk (fsync), in their order.
 */
export const traceNames = (file: string) => {
  const calls = 'trace=fsync,link,linkat,rename,renameat2,unlink,unlinkat'
  return ['strace', '-f', '-y', '-qq', '-e', calls, '-e', 'signal=none', '-o', file]
}

/** Runs a program to its end, as `runProgram` does. */
export async function runToEnd(...parameters: Parameters<typeof runProgram>) {
  const program = runProgram(...parameters)
  const code = await program.exited
  return { code, stdout: program.stdout, stderr: program.stderr }
}

/** Returns the only line of a program that failed: the text of a command, or the message of the server's entry. */
export function failureOf(stderr: string): string {
  const [line = '', ...rest] = stderr.split('\n')
  if (rest.join() !== '') throw new Error(`Not one line: ${stderr}`)
  if (!line.startsWith('{')) return line
  const { level, msg } = JSON.parse(line)
  if (level !== 'fatal') throw new Error(stderr)
  return String(msg)
}

/** Runs the server, whose start fails, and returns the one entry of its log as `message`. Throws if it has others. */
export async function failToStart(
  variables: Record<string, string>,
  ...rest: [string[]?, string?]
) {
  const { code, stdout, stderr } = await runToEnd(programs.server, variables, ...rest)
  return { code, stdout, message: failureOf(stderr) }
}

/** Runs the server on a free port, and waits until it listens. Throws if it does not start. */
export async function runServer(
  variables: Record<string, string>,
  folder?: string,
  starter?: readonly string[],
): Promise<ServerProgram> {
  const given = { PORT: '0', DATABASE_TIMEOUT, ...variables }
  const program = runProgram(programs.server, given, [], folder, starter)
  const { promise: origin, resolve } = Promise.withResolvers<string>()
  const { stdout, stderr } = program.child
  // The text with a first key, or the entry of the log.
  for (const input of [stdout, stderr]) {
    createInterface({ input }).on('line', (line) => {
      const address = /(?:REST +|"rest":")(http:\/\/\S+)\/v1\/pets/.exec(line)?.[1]
      if (address) resolve(address)
    })
  }
  const failed = program.exited.then((code) => {
    throw new Error(`The server did not start, code ${code}: ${program.stderr}`)
  })
  failed.catch(() => {}) // later exits are expected
  const address = await Promise.race([origin, failed])
  const { port } = new URL(address)
  return Object.assign(program, { origin: `http://127.0.0.1:${port}`, port: Number(port) })
}

/** Returns the resident memory of a process, in MB; only on Linux. */
export const residentMemory = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
