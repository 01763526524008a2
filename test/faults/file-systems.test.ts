/** File systems without the shared memory or the locks that SQLite needs. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { failureOf, programs, runToEnd } from '../support/process.ts'

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0
const says = /: the file system of \S+ lacks the shared memory or the locks .+ or use MySQL$/

// strace fails the system call.
test.runIf(has('strace', '-o', '/dev/null', 'true')).each([
  ['shared memory', 'mmap:error=ENODEV', 'petstore.db-shm'],
  ['locks', 'fcntl:error=EOPNOTSUPP', 'petstore.db'],
  ['a right to lock', 'fcntl:error=EPERM', 'petstore.db'],
])('a file system without %s is named, in one line', async (_, inject, name) => {
  const folder = newFolder()
  const file = path.join(folder, 'petstore.db')
  const starter = ['strace', '-f', '-qq', '-o', '/dev/null', '-P', path.join(folder, name)]
  starter.push('-e', `inject=${inject}`)
  const run = (program: 'server' | 'backup', args: string[] = []) =>
    runToEnd(programs[program], { DATABASE_URL: `sqlite:${file}?create` }, args, folder, starter)
  const refused = await run('server')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  const stderr = refused.stderr.replaceAll(/^strace:.*\n/gm, '')
  expect(failureOf(stderr)).toMatch(says)
})

test.runIf(has('bindfs', '--version'))('FUSE without shared memory is named', async () => {
  const folder = newFolder()
  for (const name of ['real', 'mounted']) mkdirSync(path.join(folder, name))
  const mounted = path.join(folder, 'mounted')
  const mount = spawnSync('bindfs', ['-o', 'direct_io', path.join(folder, 'real'), mounted])
  expect(mount.stderr.toString()).toBe('')
  onTestFinished(() => void spawnSync('umount', [mounted]))
  const variables = { DATABASE_URL: `sqlite:${mounted}/petstore.db?create` }
  const refused = await runToEnd(programs.server, variables, [], folder)
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(failureOf(refused.stderr)).toMatch(says)
})
