/**
 * The previous release, from the history of this repository, beside this one: docs/upgrades.md names its commit,
 * and promises what these tests do.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { createPetstoreClient } from '../../client/src/client.ts'
import { engine, newDatabase, newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { addKey } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { DATABASE_TIMEOUT, programs, runProgram, runToEnd } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { openSql } from '../support/sql.ts'

const root = path.join(import.meta.dirname, '../..')
const git = (...args: string[]) =>
  execFileSync('git', args, {
    cwd: root,
    maxBuffer: 100_000_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  })

const rows = readRoot('docs/upgrades.md').matchAll(/^\| [\d.]+ \| `(\w+)` \|/gm)
const commits = [...rows].map(([, commit]) => commit)
const [previous = '', first = ''] = [commits.at(0), commits.at(-1)]

/** Whether the history has a commit. It is missing in a shallow clone, and in a copy without .git. */
function isKnown(commit: string): boolean {
  expect(commit).toMatch(/^[0-9a-f]{8}$/)
  const { status } = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root })
  if (status !== 0)
    console.warn(`Skipped: the history has no commit ${commit}; git fetch --unshallow`)
  return status === 0
}

/** Returns the folder of a release: its files, and the packages of this one. */
function filesOf(commit: string): string {
  const folder = path.join(newFolder(afterAll), commit)
  mkdirSync(folder)
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit) })
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

/** The starter that runs a program of another release, in place of that of this one. */
const inPlace = (release: string, program: string) =>
  release === root
    ? []
    : ['sh', '-c', 'node=$1; shift 2; exec "$node" "$0" "$@"', path.join(release, program)]

/** Starts a release on a database, and waits until it is ready. */
async function start(release: string, url: string) {
  const port = await freePort()
  const variables = { PORT: `${port}`, DATABASE_URL: url, DATABASE_TIMEOUT }
  const starter = inPlace(release, programs.server)
  const program = runProgram(programs.server, variables, [], undefined, starter)
  onTestFinished(async () => void (await program.end()))
  const origin = `http://127.0.0.1:${port}`
  await vi.waitFor(
    async () => expect((await fetch(`${origin}/readyz`)).status, program.stderr).toBe(200),
    { timeout: 60_000, interval: 100 },
  )
  return { origin, stop: () => program.end('SIGTERM') }
}

/** Starts another release on a new database, with an API key. */
async function startOther(commit: string) {
  const before = filesOf(commit)
  const database = await newDatabase()
  onTestFinished(database.remove)
  const old = await start(before, database.url)
  await using sql = await openSql(database.url)
  const key = await addKey(sql)
  return { before, database, old, key }
}

/** What a caller does with an instance: each call must succeed. */
function caller({ origin }: { origin: string }, apiKey: string) {
  const send = keyedFetch(origin, apiKey)
  const typed = createPetstoreClient({ url: `${origin}/trpc`, apiKey })
  const json = async (response: Response) => {
    const text = await response.text()
    expect([response.status, text]).toEqual([expect.toSatisfy((status) => status < 300), text])
    return JSON.parse(text)
  }
  return {
    get: async (id: number) => json(await send(`/v1/pets/${id}`)),
    list: async () => json(await send('/v1/pets?limit=100')),
    async create(name: string, idempotencyKey?: string) {
      const body = JSON.stringify({ name, categoryId: 1 })
      const headers = { 'idempotency-key': idempotencyKey }
      return await json(await send('/v1/pets', { method: 'POST', body, headers }))
    },
    createByTrpc: (name: string, idempotencyKey: string) =>
      typed.createPet.mutate({ name, categoryId: 1 }, { context: { idempotencyKey } }),
  }
}

test.runIf(isKnown(previous))(
  'the previous release and this one serve side by side, through an upgrade and a rollback',
  async () => {
    const { before, database, old, key } = await startOther(previous)
    const ofOld = caller(old, key)
    const kept = await ofOld.create('Kept', 'before')
    // The upgrade: this release starts beside it, on the data that it has.
    const now = await start(root, database.url)
    const ofNow = caller(now, key)
    expect(await ofNow.get(kept.id)).toEqual(kept)
    // A key works for both, whichever was called first.
    expect(await ofNow.create('Kept', 'before')).toEqual(kept)
    const made = await ofNow.create('Made', 'after')
    expect(await ofOld.create('Made', 'after')).toEqual(made)
    const typed = await ofOld.createByTrpc('Typed', 'typed')
    expect(await ofNow.createByTrpc('Typed', 'typed')).toEqual(typed)
    // Repetitions at one moment: 409 while the first one runs.
    const both = Array.from({ length: 20 }, (_, index) =>
      [ofOld, ofNow].map((of) => of.create(`Pet ${index}`, `key-${index}`)),
    )
    await Promise.allSettled(both.flat())
    for (const index of both.keys()) {
      const name = `Pet ${index}`
      const [one, other] = await Promise.all(
        [ofOld, ofNow].map((of) => of.create(name, `key-${index}`)),
      )
      expect(one).toEqual({ ...one, name })
      expect(other).toEqual(one)
    }
    await Promise.all(
      [ofOld, ofNow].flatMap((of) => Array.from('abcdef', (name) => of.create(name))),
    )
    const all = await ofNow.list()
    expect(all).toHaveLength(3 + 20 + 12)
    expect(await ofOld.list()).toEqual(all)
    expect(await old.stop()).toBe(0)
    const late = await ofNow.create('Late', 'late')
    // The rollback.
    const again = await start(before, database.url)
    const ofAgain = caller(again, key)
    expect(await ofAgain.create('Late', 'late')).toEqual(late)
    expect(await now.stop()).toBe(0)
    expect(await ofAgain.list()).toEqual([...all, late])
    await ofAgain.create('Last')
    expect(await again.stop()).toBe(0)
  },
)

test.runIf(isKnown(first) && engine === 'sqlite')(
  '1.0.0: a backup, the upgrade with its data, and the way back by the backup',
  async () => {
    const { before, database, old, key } = await startOther(first)
    const kept = await caller(old, key).create('Kept', 'before')
    const file = path.join(newFolder(), 'backup.db')
    const run = async (program: 'backup' | 'restore') => {
      const starter = inPlace(before, programs[program])
      const variables = { DATABASE_URL: database.url }
      const { code, stderr } = await runToEnd(
        programs[program],
        variables,
        [file],
        undefined,
        starter,
      )
      expect(code, stderr).toBe(0)
    }
    await run('backup')
    expect(await old.stop()).toBe(0)
    const now = await start(root, database.url)
    const ofNow = caller(now, key)
    expect(await ofNow.list()).toEqual([kept])
    await expect(ofNow.create('Kept', 'before')).rejects.toThrow('422')
    await ofNow.create('After')
    expect(await now.stop()).toBe(0)
    await run('restore')
    const again = await start(before, database.url)
    expect(await caller(again, key).list()).toEqual([kept])
    expect(await again.stop()).toBe(0)
  },
)
