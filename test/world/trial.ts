/** A trial of a program of others: a test that writes a row of the table. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { emptyProject, type Project, run } from '../support/client-package.ts'
import { blocksOf } from '../support/documents.ts'

/** The environment in which the programs of Debian are found. */
export const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }

/**
 * Runs a trial, which returns the version and the result in words. A failure is a row, too, and so is a trial
 * that does not run because something is `missing`.
 */
export function trial(
  what: string,
  attempt: () => Promise<{ version: string; result: string }>,
  missing?: string,
): void {
  test(what, async ({ task, skip }) => {
    const write = (version: string, result: string) => {
      const row = [what, version, result, path.basename(task.file.name)]
      appendFileSync(inject('table'), `| ${row.join(' | ')} |\n`)
    }
    if (missing) {
      write('', `not run: ${missing}`)
      skip(missing)
    }
    try {
      const { version, result } = await attempt()
      write(version, result)
    } catch (error) {
      write('', 'failed')
      throw error
    }
  })
}

/**
 * Runs a trial in a new project, into which npm installs these packages: the first one is tried.
 * Their scripts do not run.
 */
export function npmTrial(
  what: string,
  packages: readonly string[],
  attempt: (project: Project) => Promise<string>,
): void {
  trial(what, async () => {
    const project = emptyProject()
    onTestFinished(project.remove)
    await project.install(['--ignore-scripts', ...packages])
    const result = await attempt(project)
    const name = packages[0]?.replace(/(?<=.)@.*/, '') ?? ''
    return { version: versionOf(project, name), result }
  })
}

/** The only block of code of client/README.md with these words. */
export function sample(words: string): string {
  const blocks = blocksOf(path.resolve(import.meta.dirname, '../../client/README.md'))
  const found = blocks.filter(({ code }) => code.includes(words))
  expect(found, words).toHaveLength(1)
  return `${found[0]?.code}`
}

/** The version of an installed package. */
const versionOf = ({ folder }: Project, name: string): string =>
  JSON.parse(readFileSync(path.join(folder, 'node_modules', name, 'package.json'), 'utf8')).version

/** Runs a file by this Node in a project, and returns its output. Throws it unless the exit code is 0. */
export async function runIn({ folder }: Project, file: string, ...args: string[]): Promise<string> {
  const { code, output } = await run(process.execPath, [file, ...args], folder)
  expect(code, output).toBe(0)
  return output
}

/** Runs commands by a shell in a project, as a document shows them. Throws their output if one fails. */
export async function shell({ folder }: Project, commands: string): Promise<void> {
  const { code, output } = await run('sh', ['-ec', commands], folder)
  expect(code, output).toBe(0)
}

/** Starts a server in a project, which ends with the test; it is ready when a line matches a pattern. */
export async function serve(
  { folder }: Project,
  [program, ...args]: [string, ...string[]],
  pattern: RegExp,
  variables: Record<string, string> = {},
): Promise<{ ready: string; lines: string[] }> {
  const server = spawn(program, args, {
    cwd: folder,
    detached: true, // a process group, which one signal ends
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...variables },
  })
  const ended = once(server, 'close')
  onTestFinished(async () => {
    if (server.pid && server.exitCode === null) process.kill(-server.pid)
    await ended
  })
  const lines: string[] = []
  const { promise, resolve } = Promise.withResolvers<string>()
  createInterface({ input: server.stdout }).on('line', (line) => {
    lines.push(stripVTControlCharacters(line))
    const [ready] = pattern.exec(`${lines.at(-1)}`) ?? []
    if (ready) resolve(ready)
  })
  const ready = await Promise.race([promise, ended.then(() => expect.fail(lines.join('\n')))])
  return { ready, lines }
}

/** What the trials that make a machine of their own miss here: root, and these programs; undefined for nothing. */
export function lacking(...programs: string[]): string | undefined {
  if (process.getuid?.() !== 0) return 'it needs root'
  const absent = programs.filter((name) => spawnSync('which', [name], { env }).status !== 0)
  return absent.length > 0 ? `${absent.join(', ')} missing` : undefined
}

/** The version that a program prints. Throws if the program is not installed. */
export function versionPrinted(program: string, flag: string): string {
  const { stdout, stderr, error } = spawnSync(program, [flag], { env, encoding: 'utf8' })
  if (error) throw new Error(`${program} is missing: run test/install world`)
  return /\d+\.\d+\.\d+/.exec(`${stdout}${stderr}`)?.[0] ?? ''
}
