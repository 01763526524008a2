/** The first start on the embedded database: killed at each of its steps, and several at once. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { mayTrace, programs, runProgram, runServer } from '../support/process.ts'

const DATABASE_URL = 'sqlite:data/petstore.db?create'
const CONCURRENCY = 4

const serves = async (folder: string) => {
  const server = await runServer({ DATABASE_URL }, folder)
  expect((await fetch(`${server.origin}/readyz`)).status).toBe(200)
  return await server.end('SIGTERM')
}

// What changes files; strace kills the process at such a call. A first start writes 45 times.
test.runIf(mayTrace()).each(['openat', 'ftruncate', 'unlink', 'fsync', 'pwrite64'])(
  'a first start that is killed at any %s is done by the next one',
  async (call) => {
    let step = 0
    let kills = 0
    let isOver = false
    const kill = async () => {
      while (!isOver) {
        const at = ++step
        const folder = newFolder()
        const names = ['', '-journal', '-wal', '-shm'].map((suffix) => `data/petstore.db${suffix}`)
        const paths = [...names, ...names.map((name) => path.join(folder, name))]
        const inject = `inject=${call}:signal=SIGKILL:when=${at}`
        const starter = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', inject]
        for (const name of paths) starter.push('-P', name)
        const killed = runProgram(programs.migrate, { DATABASE_URL }, [], folder, starter)
        if ((await killed.exited) === 0) isOver = true
        else kills++
        expect(await serves(folder), `killed at ${at}`).toBe(0)
        expect(existsSync(path.join(folder, 'data/petstore.db-journal'))).toBe(false)
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, kill))
    expect(kills).toBeGreaterThan(1)
  },
)

test('of several first starts at once all serve', async () => {
  for (let round = 0; round < 10; round++) {
    const folder = newFolder()
    const starts = Array.from({ length: 3 }, () => serves(folder))
    expect(await Promise.all(starts)).toEqual([0, 0, 0])
  }
})
