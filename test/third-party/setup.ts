/** Installs what the third party uses, once: it is kept apart so that nobody else has to wait for it. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

export default function setup(): void {
  const cwd = import.meta.dirname
  if (!existsSync(`${cwd}/node_modules/.package-lock.json`)) {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd, stdio: 'inherit' })
  }
}
