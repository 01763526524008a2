/** The service as a process with its own database, with helpers for tests. */
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, vi } from 'vitest'
import { newDatabase, type TestDatabase } from './database.ts'
import { newMetrics } from './metrics.ts'
import { countPets } from './pets.ts'
import { runServer } from './process.ts'
import { proxied } from './proxy.ts'
import { keyedFetch, restClient } from './rest.ts'
import { trpcClient } from './service.ts'
import { openSql, type Sql } from './sql.ts'

export type Instance = Awaited<ReturnType<typeof startInstance>>

/** Starts the service with these variables, on a given database, which is kept, or on a new one. */
export async function startInstance(variables: Record<string, string> = {}, given?: TestDatabase) {
  const database = given ?? (await newDatabase())
  const { proxy, url } = database.url.startsWith('mysql:')
    ? await proxied(database.url)
    : { proxy: undefined, url: database.url }
  const metrics = await newMetrics()
  const used = () => metrics.read('petstore_database_connections_used')
  const waiting = () => metrics.read('petstore_database_connections_waiting')
  const program = await runServer({ DATABASE_URL: url, ...metrics.variables, ...variables })
  const { origin } = program
  const sql = await openSql(database.url)
  const key = await addKey(sql)
  return {
    program,
    origin,
    /** A valid API key. */
    key,
    fetch: keyedFetch(origin, key),
    rest: restClient(origin, key),
    trpc: trpcClient(origin, key),
    databaseUrl: database.url,
    /** Runs plain SQL on a separate connection, not through the proxy. */
    sql,
    /** The proxy between the service and its MySQL server; undefined on SQLite. */
    proxy,
    /** The value of the metric of this name and these labels, such as `petstore_x{a="b"}`; 0 if none. */
    metric: metrics.read,
    /** The connections to the database in use, and the calls that wait for one. */
    used,
    waiting,
    /** Waits until there are neither. */
    idle: () => until('it is idle', async () => (await used()) + (await waiting()) === 0),
    countPets: () => countPets(sql),
    /** Ends the process by a signal, removes its database, and returns its exit code. */
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      await proxy?.cut()
      program.child.kill(signal)
      const code = await program.exited
      await sql.close()
      if (!given) await database.remove()
      return code
    },
  }
}

/** Starts the service for all tests of a file, and stops it after them. */
export async function instanceForFile(
  ...parameters: Parameters<typeof startInstance>
): Promise<Instance> {
  const instance = await startInstance(...parameters)
  afterAll(() => instance.stop())
  return instance
}

/** Adds an API key to a migrated database. */
export async function addKey(sql: Sql, name = 'test'): Promise<string> {
  const key = `petstore_${randomBytes(32).toString('base64url')}`
  const hash = createHash('sha256').update(key).digest('hex')
  await sql(
    'insert into api_keys (name, prefix, hash, created_at, read_only) values (?, ?, ?, ?, 0)',
    [name, key.slice(0, 15), hash, Date.now()],
  )
  return key
}

/** The clock that `stopClock` (clock.ts) does not stop. */
const now = performance.now.bind(performance)

/** Waits until a condition is true. Throws an error with `what` after a timeout. */
export async function until(
  what: string,
  isSo: () => Promise<boolean> | boolean,
  timeout = 30_000,
): Promise<void> {
  const end = now() + timeout
  while (!(await isSo())) {
    if (now() > end) throw new Error(`It did not come to this: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The ids of the connections of a MySQL server whose current statement matches this pattern. */
export async function running(sql: Sql, pattern: string): Promise<number[]> {
  // MySQL fails to list a statement of another test with characters beyond the Basic Multilingual Plane.
  const rows = await vi.waitFor(
    () =>
      sql(
        `select id from information_schema.processlist
       where info like ? and db = database() and id <> connection_id()`,
        [pattern],
      ),
    30_000,
  )
  return rows.map(({ id }) => Number(id))
}
