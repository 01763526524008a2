/** The service on a database of its own, over real HTTP, with clients for both surfaces. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTRPCClient, httpLink, type TRPCClient, TRPCClientError } from '@trpc/client'
import { pino } from 'pino'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { type Config, readConfig } from '../../src/config.ts'
import type { Patience } from '../../src/http/server.ts'
import { createKey } from '../../src/keys/store.ts'
import type { AppRouter } from '../../src/router.ts'
import { createService } from '../../src/service.ts'
import { transformer } from '../../src/trpc/transformer.ts'
import { newDatabase } from './database.ts'
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
  /** What was logged so far, a line of JSON each. */
  logged: string[]
  stop(): Promise<void>
}

/** Starts the service on a new database; `overrides` are for what a test is about. */
export async function startService(
  overrides: Partial<Config> = {},
  patience?: Patience,
): Promise<Service> {
  const database = await newDatabase()
  const service = await startServiceOn(database.url, overrides, patience)
  return {
    ...service,
    async stop() {
      await service.stop()
      await database.remove()
    },
  }
}

/** Starts the service on a database that is there already. */
export async function startServiceOn(
  databaseUrl: string,
  overrides: Partial<Config> = {},
  patience?: Patience,
): Promise<Service> {
  const config: Config = {
    ...readConfig({
      DATABASE_URL: databaseUrl,
      BASE_URL: 'https://petstore.example/v1',
      STAGING_URL: 'https://staging.petstore.example/v1',
    }),
    ...overrides,
  }
  const admin = connect(databaseUrl)
  await migrate(admin)
  const { key } = await createKey(admin, 'test')
  await admin.destroy()
  const logged: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  const { server, db, close } = createService(config, log, patience)
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
    logged,
    async stop() {
      server.close()
      server.closeAllConnections()
      await close()
    },
  }
}

/** A real tRPC client for the service at `origin`. */
export function trpcClient(
  origin: string,
  key?: string,
  headers: Record<string, string> = {},
): TRPCClient<AppRouter> {
  return createTRPCClient<AppRouter>({
    links: [
      httpLink({
        url: `${origin}/trpc`,
        transformer,
        headers: { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...headers },
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
