/** The service on a database of its own, over real HTTP, with clients for both surfaces. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTRPCClient, httpLink, type TRPCClient, TRPCClientError } from '@trpc/client'
import type { CompiledQuery } from 'kysely'
import { pino } from 'pino'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import type { PoolUsage } from '../../db/mysql.ts'
import type { Database } from '../../db/tables.ts'
import { type Config, readConfig } from '../../src/config.ts'
import type { Patience } from '../../src/http/server.ts'
import { createKey } from '../../src/keys/store.ts'
import type { Metrics } from '../../src/metrics.ts'
import type { AppRouter } from '../../src/router.ts'
import { createService } from '../../src/service.ts'
import { transformer } from '../../src/trpc/transformer.ts'
import { newDatabase, type TestDatabase } from './database.ts'
import { watch } from './queries.ts'
import { type RestClient, restClient } from './rest.ts'

export interface Service {
  /** The address, without a path. */
  origin: string
  /** The address of `/v1` in links: another one than `origin`, so that a mix-up shows. */
  baseUrl: string
  /** A valid API key. */
  key: string
  db: Database
  server: Server
  rest: RestClient
  trpc: TRPCClient<AppRouter>
  /** The DATABASE_URL. */
  databaseUrl: string
  /** What the database's pool does. */
  usage: PoolUsage
  /** Every query so far, the tests' own too. */
  queries: CompiledQuery[]
  /** Undefined unless `overrides` ask for them. */
  metrics: Metrics | undefined
  /** What was logged so far, a line of JSON each. */
  logged: string[]
  stop(): Promise<void>
}

/** Starts the service, on a new database; `overrides` are for what a test is about. */
export async function startService(
  overrides: Partial<Config> = {},
  patience?: Patience,
  database?: TestDatabase,
): Promise<Service> {
  database ??= await newDatabase()
  const config: Config = {
    ...readConfig({
      DATABASE_URL: database.url,
      BASE_URL: 'https://petstore.example/v1',
      STAGING_URL: 'https://staging.petstore.example/v1',
    }),
    ...overrides,
  }
  const admin = connect(database.url)
  await migrate(admin)
  const { key } = await createKey(admin, 'test')
  await admin.destroy()
  const logged: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  const usage = { used: 0, waiting: 0 }
  const settings = { timeout: config.databaseTimeout, usage }
  const { db, queries } = watch(connect(database.url, settings))
  const { server, metrics, close } = createService({ config, db, usage, log, patience })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    baseUrl: config.baseUrl,
    key,
    db,
    server,
    rest: restClient(origin, key),
    trpc: trpcClient(origin, key),
    databaseUrl: database.url,
    usage,
    queries,
    metrics,
    logged,
    async stop() {
      server.close()
      server.closeAllConnections()
      await close()
      await db.destroy()
      await database.remove()
    },
  }
}

/** A real tRPC client for the service at `origin`; `send` may change what goes over the wire. */
export function trpcClient(
  origin: string,
  key: string,
  send: typeof fetch = fetch,
): TRPCClient<AppRouter> {
  return createTRPCClient<AppRouter>({
    links: [
      httpLink({
        url: `${origin}/trpc`,
        transformer,
        headers: { authorization: `Bearer ${key}` },
        fetch: (url, init) => send(url, init as RequestInit),
      }),
    ],
  })
}

/** The code, status and message of the error that a tRPC call ends with. Fails when there is none. */
export async function errorOf(
  call: Promise<unknown>,
): Promise<{ code: string | undefined; status: number | undefined; message: string }> {
  try {
    await call
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error
    return { code: error.data?.code, status: error.data?.httpStatus, message: error.message }
  }
  throw new Error('The call did not fail')
}
