/** Installs what the third party uses, once: it is kept apart so that nobody else has to wait for it. */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'

export default function setup(): void {
  const cwd = import.meta.dirname
  const time = (file: string) => statSync(`${cwd}/${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (time('node_modules/.package-lock.json') < time('package-lock.json')) {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd, stdio: 'inherit' })
  }
}
