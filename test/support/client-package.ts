/** A project of somebody else, for what is installed into it and compiled there. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

/** Quick and quiet; what is installed stays the same. */
const NPM_FLAGS = ['--prefer-offline', '--no-audit', '--no-fund']

/** A program of this repository's tools. */
export const bin = (name: string): string => path.join(root, 'node_modules/.bin', name)

/** Runs a program to its end and gives what it printed and its exit code. */
export const run = (program: string, args: string[], cwd: string, signal?: AbortSignal) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program, args, { cwd, signal }, (error, stdout, stderr) =>
      resolve({
        code: error ? Number(error.code ?? 1) : 0, // a signal that ended it leaves none
        output: stdout || stderr || `${error?.message ?? ''}`,
      }),
    )
  })

/** A project of somebody else. */
export interface Project {
  folder: string
  write(file: string, text: string): void
  /** `npm install` with these words; throws what npm says when it does not end well, or is aborted. */
  install(words: string[], abort?: AbortSignal): Promise<void>
  /** What the compiler has to say of files of the project, in its strictest settings. */
  compile(files: string[], options?: object): Promise<string[]>
  remove(): void
}

/** A new project, as empty as `npm init` makes it. */
export function emptyProject(): Project {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-consumer-'))
  const write = (file: string, text: string) => writeFileSync(path.join(folder, file), text)
  write('package.json', '{ "private": true, "type": "module" }')
  return {
    folder,
    write,
    async install(words, abort) {
      const { code, output } = await run('npm', ['install', ...NPM_FLAGS, ...words], folder, abort)
      if (code !== 0) throw new Error(output)
    },
    async compile(files, options = {}) {
      const compilerOptions = {
        target: 'esnext',
        lib: ['esnext', 'dom'],
        module: 'nodenext',
        types: [],
        noEmit: true,
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        ...options,
      }
      write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
      const { output } = await run(bin('tsc'), ['--pretty', 'false'], folder)
      return output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
