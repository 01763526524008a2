/** README's two commands on stock machines: a minimal Debian with Node 20 and npm, and nothing else. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, vi } from 'vitest'
import { emptyProject } from '../support/client-package.ts'
import { blocksOf } from '../support/documents.ts'
import { freePort } from '../support/mysql.ts'
import { env, lacking, trial } from './trial.ts'

const repository = path.resolve(import.meta.dirname, '../..')
// A busy machine takes a quarter of an hour for one of them.
vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 600_000 })

const missing = lacking('debootstrap', 'unshare')

/** README's only block of code with these words. */
function command(words: string): string {
  const found = blocksOf(path.join(repository, 'README.md')).filter(({ code }) =>
    code.includes(words),
  )
  expect(found, words).toHaveLength(1)
  return `${found[0]?.code.trim()}`
}

for (const suite of ['bookworm', 'trixie']) {
  let made: Promise<string> | undefined
  const root = () => (made ??= makeRoot(suite))
  afterAll(async () => {
    if (made) rmSync(await made, { recursive: true, force: true })
  })

  trial(
    `\`npm ci && npm start\` on a stock Debian ${suite}`,
    async () => {
      const port = await freePort()
      const process = runIn(await root(), command('npm ci && npm start'), { PORT: `${port}` })
      onTestFinished(process.end)
      const key = await process.printed(/petstore_[\w-]{43}/)
      const headers = { authorization: `Bearer ${key}` }
      const answer = await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers })
      expect([answer.status, await answer.json()]).toEqual([200, []])
      return { version: versionOf(await root()), result: 'serves, with Node 20 and npm alone' }
    },
    missing,
  )

  // Of the tests, those that use what test/install installs: all of them would take half an hour here.
  const using = {
    MariaDB: 'test/db/plans.test.ts',
    OpenSSL: 'test/db/engines/mysql/tls.mysql.test.ts',
    promtool: 'test/deploy/alerts.unit.test.ts',
    Python: 'test/observe/log.test.ts',
    'Chromium and curl': 'test/journeys/docs.test.ts',
  }
  trial(
    `\`test/install && npm ci && npm test\` on a stock Debian ${suite}`,
    async () => {
      const commands = command('test/install && npm ci && npm test')
      const refused = runIn(await root(), commands, {}, 'nobody')
      expect(await refused.ended).toBe(1)
      expect(refused.output()).toBe(
        'Have an administrator install these packages: chromium mariadb-server curl python3 prometheus strace openssl\n',
      )
      const process = runIn(await root(), `${commands} -- ${Object.values(using).join(' ')}`)
      onTestFinished(process.end)
      expect(await process.ended, process.output()).toBe(0)
      return {
        version: versionOf(await root()),
        result: `the checks, and the tests that use ${Object.keys(using).join(', ')}`,
      }
    },
    missing,
  )
}

/** Makes the root of a machine, with this repository in /opt/petstore. */
async function makeRoot(suite: string): Promise<string> {
  const root = mkdtempSync(path.join(tmpdir(), `petstore-${suite}-`))
  chmodSync(root, 0o755)
  await promisify(execFile)('debootstrap', ['--variant=minbase', suite, root], { env })
  writeFileSync(path.join(root, 'etc/hosts'), '127.0.0.1 localhost\n') // as each installed machine has
  const project = emptyProject()
  onTestFinished(project.remove)
  project.write('package.json', '{ "allowScripts": { "node": true } }')
  await project.install(['node@20', 'npm@10'])
  const installed = path.join(project.folder, 'node_modules')
  cpSync(path.join(installed, 'node/bin/node'), path.join(root, 'usr/bin/node'))
  cpSync(path.join(installed, 'npm'), path.join(root, 'usr/lib/node_modules/npm'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  for (const name of ['npm', 'npx']) {
    const program = `../lib/node_modules/npm/bin/${name}-cli.js`
    symlinkSync(program, path.join(root, 'usr/bin', name))
  }
  const authorities = npmSetting('cafile')
  if (authorities) cpSync(authorities, path.join(root, 'authorities.pem'))
  const own = /^(\.git|node_modules|dist|data|backups|\.env|\.env\.local)$|\.tgz$/
  cpSync(repository, path.join(root, 'opt/petstore'), {
    recursive: true,
    filter: (source) => !own.test(path.basename(source)),
  })
  return root
}

/** Runs commands in a root, whose processes end with the one that this starts. */
function runIn(root: string, commands: string, variables: Record<string, string> = {}, user = '0') {
  const mount = [
    ...['mount -t proc proc "$1/proc"', 'mount -t tmpfs shm "$1/dev/shm"'],
    'mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"',
  ].join(' && ')
  const enter = `${mount} && exec chroot --userspec="$2" "$1" sh -c "cd /opt/petstore && $3"`
  const isolate = ['--mount', '--pid', '--fork', '--kill-child']
  const child = spawn('unshare', [...isolate, 'sh', '-c', enter, 'sh', root, user, commands], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', ...network(), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => (output += text))
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return {
    ended,
    output: () => output,
    /** Waits for the first text that matches. Throws the output if the commands end before. */
    async printed(pattern: RegExp): Promise<string> {
      const found = () => pattern.exec(output)?.[0]
      const waiting = vi.waitUntil(found, { timeout: 500_000 })
      return await Promise.race([waiting, ended.then(() => found() ?? expect.fail(output))])
    },
    async end(): Promise<void> {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** The variables by which npm reaches the registry as on this machine. */
function network(): Record<string, string> {
  const proxies = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name))
  return {
    ...Object.fromEntries(proxies.map(([name, value]) => [name, `${value}`])),
    npm_config_registry: npmSetting('registry'),
    ...(npmSetting('cafile') && { npm_config_cafile: '/authorities.pem' }),
  }
}

function npmSetting(name: string): string {
  const value = execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim()
  return value === 'null' ? '' : value
}

const versionOf = (root: string) =>
  readFileSync(path.join(root, 'etc/debian_version'), 'utf8').trim()
