/** A consumer project, into which tests install packages and in which they compile files. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

/** Faster and with less output; the installed packages are the same. */
const NPM_FLAGS = ['--prefer-offline', '--no-audit', '--no-fund']

/** The path of a tool of this repository. */
export const bin = (name: string): string => path.join(root, 'node_modules/.bin', name)

/** Runs a program to its end, and returns its output and its exit code. */
export const run = (program: string, args: string[], cwd: string, signal?: AbortSignal) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program, args, { cwd, signal }, (error, stdout, stderr) =>
      resolve({
        code: error ? Number(error.code ?? 1) : 0, // no code after a signal
        output: stdout || stderr || `${error?.message ?? ''}`,
      }),
    )
  })

/** A consumer project. */
export type Project = ReturnType<typeof emptyProject>

/** Makes a new project, as `npm init` does. */
export function emptyProject() {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-consumer-'))
  const write = (file: string, text: string) => writeFileSync(path.join(folder, file), text)
  write('package.json', '{ "private": true, "type": "module" }')
  return {
    folder,
    write,
    /** Runs `npm install` with these arguments. Throws the output of npm if it fails. */
    async install(words: string[]) {
      const { code, output } = await run('npm', ['install', ...NPM_FLAGS, ...words], folder)
      if (code !== 0) throw new Error(output)
    },
    /**
     * Unpacks the packed client, and links this repository's versions of the packages that the client
     * requires and of these ones: what npm would install, without the registry.
     */
    link(tarball: string, names: string[] = []) {
      const modules = path.join(folder, 'node_modules')
      const client = path.join(modules, '@petstore-catalogue/petstore')
      mkdirSync(client, { recursive: true })
      execFileSync('tar', ['-xzf', tarball, '-C', client, '--strip-components=1'])
      const manifest = JSON.parse(readFileSync(path.join(client, 'package.json'), 'utf8'))
      const { dependencies, peerDependencies, peerDependenciesMeta } = manifest
      const required = Object.keys({ ...dependencies, ...peerDependencies }).filter(
        (name) => !peerDependenciesMeta[name]?.optional,
      )
      for (const name of new Set([...required, ...names])) {
        mkdirSync(path.dirname(path.join(modules, name)), { recursive: true })
        symlinkSync(path.join(root, 'node_modules', name), path.join(modules, name), 'dir')
      }
    },
    /** The errors of the compiler for files of the project, with its strictest options. */
    async compile(files: string[], options: object = {}) {
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
      const { output } = await run(bin('tsc'), ['--checkers', '1', '--pretty', 'false'], folder)
      return output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
