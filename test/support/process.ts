/** The programs of this repository as processes of their own, as their users start them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'

const root = path.join(import.meta.dirname, '../..')
const node = path.join(root, 'node_modules/.bin/node')

/** An empty folder to run in: the embedded database is made there, and no `.env` interferes. */
export function newFolder(): { folder: string; remove(): void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-process-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export type Environment = Record<string, string>

function start(folder: string, program: string, operands: string[], environment: Environment) {
  return spawn(node, [path.join(root, program), ...operands], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a program, such as `src/commands/seed.ts`, to its end. */
export async function run(
  folder: string,
  program: string,
  operands: string[] = [],
  environment: Environment = {},
): Promise<Ended> {
  const child = start(folder, program, operands, environment)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { code, stdout, stderr }
}

export interface Running {
  origin: string
  /** What it said at its start. */
  stdout: string
  stderr(): string
  /** Ends the process with a signal, and gives its exit code: null where the signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts the service on any free port, and waits until it says where it is. */
export async function startServer(folder: string, environment: Environment = {}): Promise<Running> {
  const child: ChildProcess = start(folder, 'src/server.ts', [], { PORT: '0', ...environment })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  const exited = once(child, 'exit')
  for (let waits = 0; !stdout.includes('categoryId'); waits++) {
    if (child.exitCode !== null || waits > 600) {
      child.kill('SIGKILL')
      throw new Error(`The service did not start: ${stdout}${stderr}`)
    }
    await setTimeout(50)
  }
  const [origin] = stdout.match(/http:\/\/localhost:\d+/) ?? []
  return {
    origin: String(origin),
    stdout,
    stderr: () => stderr,
    async end(signal) {
      child.kill(signal)
      return (await exited)[0]
    },
  }
}
