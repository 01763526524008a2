/** Load by wrk: one case on one server, some seconds long, every answer checked. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Case, repeatable } from './cases.ts'
import type { Server } from './servers.ts'

/** How many connections ask at the same time. */
export const CONNECTIONS = 32

/** How many requests are made before, to choose from. */
const VARIETY = 20_000

/** What came of a load. */
export interface Result {
  requests: number
  seconds: number
  /** Milliseconds within which 99 of 100 requests were answered. */
  p99: number
}

interface Settings {
  seconds: number
  /** Compares the status of every answer with the one expected; otherwise only errors count. */
  strict: boolean
  /** Ends the load early; the promise is rejected. */
  signal: AbortSignal
}

/**
 * Sends the requests of a case in random order. Throws when an answer was not the one expected, or
 * when the database has not as many new pets as creations were answered.
 */
export async function load(
  server: Server,
  test: Case,
  { seconds, strict, signal }: Settings,
): Promise<Result> {
  const file = path.join(server.folder, `${test.id}.requests`)
  const random = repeatable()
  const lines = Array.from({ length: VARIETY }, () => test.request(random, server.codec))
  writeFileSync(file, `${lines.join('\n')}\n`)
  const before = test.creates ? await server.countPets() : 0
  const sampling = setInterval(server.sampleMemory, 1_000)
  const { stdout } = await promisify(execFile)(
    'wrk',
    [
      ...['--threads', '1', '--connections', String(CONNECTIONS), '--duration', `${seconds}s`],
      ...['--timeout', '10s', '--header', `Authorization: Bearer ${server.key}`],
      ...(test.creates ? ['--header', 'Content-Type: application/json'] : []),
      ...['--script', path.join(import.meta.dirname, 'requests.lua'), `${server.origin}/v1/pets`],
      ...['--', file, test.creates ? 'POST' : 'GET', ...(strict ? [String(test.status)] : [])],
    ],
    { signal },
  ).finally(() => clearInterval(sampling))
  await server.sampleMemory()
  const { failed, wrong, ...result }: Result & { failed: number; wrong: number } = JSON.parse(
    stdout.trim().split('\n').at(-1) ?? '',
  )
  const said = `${server.name}, ${test.title}: of ${result.requests} requests`
  if (failed > 0 || wrong > 0 || result.requests === 0) {
    throw new Error(`${said} ${failed} failed and ${wrong} were not answered ${test.status}`)
  }
  if (test.creates) {
    const created = (await server.countPets()) - before
    if (created < result.requests) throw new Error(`${said} only ${created} were kept`)
  }
  server.emptyLog()
  return result
}
