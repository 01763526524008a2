/** Containers of the Docker engine of this machine, for tests; all end with the test. */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

const root = path.resolve(import.meta.dirname, '../..')

/** Why there is no Docker here; undefined where there is one. */
export const withoutDocker: string | undefined =
  spawnSync('docker', ['compose', 'version']).status !== 0
    ? 'Docker or its Compose is missing'
    : spawnSync('docker', ['version']).status !== 0
      ? 'no Docker engine answers'
      : undefined

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Runs a program in the root of the repository to its end. */
export const execute = (program: string, args: string[], variables: Record<string, string> = {}) =>
  new Promise<Ran>((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...variables }, maxBuffer: 2 ** 28 }
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })

/** Runs a command of Docker, and returns its stdout. Throws its stderr if it fails. */
export async function docker(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await execute('docker', args)
  if (code !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr || stdout}`)
  return stdout.trim()
}

let built: Promise<string> | undefined

/** Builds the image of the Dockerfile, once for all tests of a file, and returns its name. */
export function image(): Promise<string> {
  built ??= docker('build', '--quiet', '--tag', 'petstore-tested', '.').then(
    () => 'petstore-tested',
  )
  return built
}

/** Starts a container of the image with these options of `docker run`, and returns its name. */
export async function start(options: string[] = [], command: string[] = []): Promise<string> {
  const name = `petstore-${randomBytes(4).toString('hex')}`
  onTestFinished(async () => {
    await docker('rm', '--force', '--volumes', name)
  })
  await docker('run', '--detach', '--name', name, ...options, await image(), ...command)
  return name
}

/** A value of `docker inspect`, by its Go template. */
export const inspect = (name: string, template: string): Promise<string> =>
  docker('inspect', name, '--format', `{{${template}}}`)

/** All lines that a container has printed. */
export async function logs(name: string): Promise<string> {
  const { stdout, stderr } = await execute('docker', ['logs', name])
  return stdout + stderr
}

/** Waits until a container has printed what matches, and returns that. Throws its output if it ends before. */
export async function logged(name: string, pattern: RegExp): Promise<string> {
  for (;;) {
    const isRunning = (await inspect(name, '.State.Running')) === 'true'
    const printed = await logs(name)
    const [found] = pattern.exec(printed) ?? []
    if (found !== undefined) return found
    if (!isRunning) throw new Error(printed)
    await wait(200)
  }
}

/** Runs `docker compose` with these files in a folder, as a project of this name. */
export function composeIn(folder: string, project: string, ...files: string[]) {
  const options = ['compose', '--project-name', project, '--project-directory', folder]
  const all = [...options, ...files.flatMap((file) => ['--file', path.join(folder, file)])]
  return (...args: string[]) => execute('docker', [...all, ...args])
}
