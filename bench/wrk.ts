/** Load by wrk: runs one case on one server for some seconds, and checks every response. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Case, repeatable } from './cases.ts'
import { allowedCores, pin } from './processes.ts'
import type { Server } from './servers.ts'

/** The number of prepared requests. */
const VARIETY = 20_000

/** The result of a load. */
export interface Result {
  requests: number
  seconds: number
  /** The median time of a response in milliseconds. */
  p50: number
  /** The 99th percentile of the time of a response in milliseconds. */
  p99: number
  /** Bytes of all responses, with their headers. */
  bytes: number
  /** Seconds of processor time of the server; NaN if the system does not report it. */
  service: number
  /** Seconds of processor time of the process of the database; 0 if there is none. */
  database: number
  /** Seconds of processor time of wrk. */
  load: number
  /** The number of statements on the database, and of inserts among them; 0 on SQLite. */
  statements: number
  inserts: number
}

interface Settings {
  seconds: number
  /** Compares the status of every response with the expected ones; otherwise counts only errors. */
  strict: boolean
  /** Aborts the load and rejects the promise. */
  signal: AbortSignal
}

let runs = 0

const cores = allowedCores()
const ofServer = cores.slice(0, Math.ceil(cores.length / 2))
const ofOthers = cores.slice(ofServer.length)

/**
 * Sends the requests of a case in random order. Throws if a response is not the expected one, or if
 * the number of new pets in the database differs from the number of acknowledged creations.
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
  // One caller alone is slower or faster by a fifth, for minutes, by where the scheduler has put the server, the
  // database and wrk. So the server has cores of its own, as if the others were on other machines.
  const isAlone = test.connections === 1 && cores.length > 1
  const place = (ofService: number[], ofDatabase: number[]) => {
    pin(server.pid, ofService)
    if (server.databasePid !== undefined) pin(server.databasePid, ofDatabase)
  }
  if (isAlone) place(ofServer, ofOthers)
  const { stdout } = await promisify(execFile)(
    isAlone ? 'taskset' : 'wrk',
    [
      ...(isAlone ? ['--cpu-list', ofOthers.join(), 'wrk'] : []),
      ...['--threads', '1', '--connections', String(test.connections), '--duration', `${seconds}s`],
      ...['--timeout', '10s', '--header', `Authorization: Bearer ${server.key}`],
      ...['--script', path.join(import.meta.dirname, 'requests.lua'), `${server.origin}/v1/pets`],
      ...['--', file, keys, ...(strict ? ['strict'] : [])],
    ],
    { signal },
  ).finally(() => {
    clearInterval(sampling)
    if (isAlone) place(cores, cores)
  })
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
    const answered = result.requests - reads // a lower limit: some reads may have no response
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

/** The output of requests.lua. */
interface Loaded extends Omit<Result, 'service' | 'database' | 'statements' | 'inserts'> {
  reads: number
  failed: number
  wrong: number
}
