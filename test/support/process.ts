/** The service as a process of its own, started as an operator would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'

const compiled = path.join(tmpdir(), 'petstore-compiled')
const root = path.join(import.meta.dirname, '../..')

/** The DATABASE_TIMEOUT of tests that set none: the default of 5 seconds is too short for a busy machine. */
export const DATABASE_TIMEOUT = '30s'

/** The programs of this repository, by what they are for. */
export const programs = {
  server: 'src/main.ts',
  keys: 'src/cli/keys.ts',
  migrate: 'src/cli/migrate.ts',
  seed: 'src/cli/seed.ts',
  backup: 'src/cli/backup.ts',
  restore: 'src/cli/restore.ts',
  openapi: 'src/cli/openapi.ts',
} as const

/** A line of the log. */
export type LogEntry = Record<string, unknown>

/** A process of this repository's programs. */
export interface Program {
  child: ChildProcess
  /** What it wrote so far. */
  readonly stdout: string
  readonly stderr: string
  /** The first line of the log that is about this; waits for it. */
  logged(pattern: RegExp): Promise<string>
  /** The entries of the log so far. Throws where a line is not one. */
  entries(): LogEntry[]
  /** Its exit code, when it has ended; null when a signal ended it. */
  exited: Promise<number | null>
}

/** A server that listens. */
export interface ServerProgram extends Program {
  origin: string
  port: number
}

/**
 * Runs a program with these variables and no others of ours, in an empty folder, so that neither
 * an `.env` nor a `data` folder of this checkout counts; `folder` is for what a restart finds again.
 */
export function runProgram(
  program: string,
  variables: Record<string, string> = {},
  args: string[] = [],
  folder?: string,
): Program {
  const cwd = folder ?? mkdtempSync(path.join(tmpdir(), 'petstore-run-'))
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [path.join(root, program), ...args], {
    cwd,
    // What Node has compiled once need not be compiled in each of the many processes.
    env: { PATH, HOME, NODE_COMPILE_CACHE: compiled, ...variables },
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
    get stdout() {
      return output.stdout
    },
    get stderr() {
      return output.stderr
    },
    async logged(pattern) {
      const find = () => output.stderr.split('\n').find((line) => pattern.test(line))
      for (;;) {
        const line = find()
        if (line !== undefined) return line
        await once(child.stderr, 'data')
      }
    },
    entries: () =>
      output.stderr
        .slice(0, output.stderr.lastIndexOf('\n') + 1)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    exited,
  }
}

/** What a program left behind. */
export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a program as `runProgram` does, to its end. */
export async function runToEnd(...parameters: Parameters<typeof runProgram>): Promise<Ended> {
  const program = runProgram(...parameters)
  const code = await program.exited
  return { code, stdout: program.stdout, stderr: program.stderr }
}

/** A new empty folder, for programs that follow each other. */
export function newFolder(): { folder: string; remove(): void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-run-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Runs the server on a free port, and waits until it listens. Throws when it does not start. */
export async function runServer(
  variables: Record<string, string>,
  folder?: string,
): Promise<ServerProgram> {
  const given = { PORT: '0', DATABASE_TIMEOUT, ...variables }
  const program = runProgram(programs.server, given, [], folder)
  const { promise: origin, resolve } = Promise.withResolvers<string>()
  createInterface({ input: program.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    const address = /REST +(http:\/\/\S+)\/v1\/pets/.exec(line)?.[1]
    if (address) resolve(address)
  })
  const failed = program.exited.then((code) => {
    throw new Error(`The server did not start, code ${code}: ${program.stderr}`)
  })
  failed.catch(() => {}) // later it may end as it likes
  const address = await Promise.race([origin, failed])
  const { port } = new URL(address)
  return Object.assign(program, { origin: `http://127.0.0.1:${port}`, port: Number(port) })
}
