/** The scripts of package.json. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { newFolder } from '../support/process.ts'

const root = path.join(import.meta.dirname, '../..')

test('each file that a script names exists', () => {
  const named = Object.values(manifest.scripts).flatMap(
    (script) => script.match(/(?<=^| )[\w./-]+\.(?:ts|json)\b/g) ?? [],
  )
  expect(named).toContain('src/main.ts')
  for (const file of named) expect(existsSync(path.join(root, file)), file).toBe(true)
})

test('storefront:key makes one read-only key for the shop, and no file where it fails', () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  mkdirSync(path.join(folder, 'examples/storefront'), { recursive: true })
  symlinkSync(path.join(root, 'src'), path.join(folder, 'src'))
  const file = path.join(folder, 'examples/storefront/.env.local')
  const { PATH = '' } = process.env
  const run = (DATABASE_URL: string) =>
    execFileSync('sh', ['-c', manifest.scripts['storefront:key']], {
      cwd: folder,
      env: { PATH: `${path.dirname(process.execPath)}:${PATH}`, DATABASE_URL },
      stdio: 'ignore',
    })
  expect(() => run('sqlite:missing.db')).toThrow(/^Command failed/)
  expect(existsSync(file)).toBe(false)
  run('sqlite:pets.db?create')
  const made = readFileSync(file, 'utf8')
  expect(made).toMatch(/^VITE_PETSTORE_KEY=petstore_read_[\w-]{43}\n$/)
  run('sqlite:missing.db')
  expect(readFileSync(file, 'utf8')).toBe(made)
})
