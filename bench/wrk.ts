/** Load by wrk: one case on one server, some seconds long, every answer checked. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Case, repeatable } from './cases.ts'
import type { Server } from './servers.ts'

/** How many requests are made before, to choose from. */
const VARIETY = 20_000

/** What came of a load. */
export interface Result {
  requests: number
  seconds: number
  /** Milliseconds within which half of the requests were answered. */
  p50: number
  /** Milliseconds within which 99 of 100 requests were answered. */
  p99: number
  /** Bytes of all answers, with their heads. */
  bytes: number
  /** Seconds of processor time of the server; NaN where the system does not tell it. */
  service: number
  /** The same of the database's process; 0 where it has none. */
  database: number
  /** The same of wrk. */
  load: number
  /** How many statements the database was sent, and how many of them inserted; 0 on SQLite. */
  statements: number
  inserts: number
}

interface Settings {
  seconds: number
  /** Compares the status of every answer with those expected; otherwise only errors count. */
  strict: boolean
  /** Ends the load early; the promise is rejected. */
  signal: AbortSignal
}

let runs = 0

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
  const lines = Array.from({ length: VARIETY }, () => {
    const { path, body } = test.request(random, server.codec)
    return body === undefined ? path : `${path}\t${body}`
  })
  writeFileSync(file, `${lines.join('\n')}\n`)
  const keys = test.isKeyed && server.takesKeys ? `${process.pid}-${Date.now()}-${runs++}-` : '-'
  const pets = test.creates ? await server.countPets() : 0
  const before = await server.sample()
  const sampling = setInterval(server.sampleMemory, 1_000)
  const { stdout } = await promisify(execFile)(
    'wrk',
    [
      ...['--threads', '1', '--connections', String(test.connections), '--duration', `${seconds}s`],
      ...['--timeout', '10s', '--header', `Authorization: Bearer ${server.key}`],
      ...['--script', path.join(import.meta.dirname, 'requests.lua'), `${server.origin}/v1/pets`],
      ...['--', file, keys, ...(strict ? ['strict'] : [])],
    ],
    { signal },
  ).finally(() => clearInterval(sampling))
  const after = await server.sample()
  await server.sampleMemory()
  const { failed, wrong, reads, ...result }: Loaded = JSON.parse(
    stdout.trim().split('\n').at(-1) ?? '',
  )
  const said = `${server.name}, ${test.title}: of ${result.requests} requests`
  if (failed > 0 || wrong > 0 || result.requests === 0) {
    throw new Error(`${said} ${failed} failed and ${wrong} had another status than 200 or 201`)
  }
  if (test.creates) {
    const created = (await server.countPets()) - pets
    const answered = result.requests - reads // at least: not every read that was sent was answered
    if (created < answered) throw new Error(`${said} only ${created} of ${answered} pets were kept`)
  }
  server.emptyLog()
  return {
    ...result,
    service: after.service - before.service,
    database: after.database - before.database,
    statements: after.statements - before.statements,
    inserts: after.inserts - before.inserts,
  }
}

/** What requests.lua writes. */
interface Loaded extends Omit<Result, 'service' | 'database' | 'statements' | 'inserts'> {
  reads: number
  failed: number
  wrong: number
}
