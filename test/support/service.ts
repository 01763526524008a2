/**
 * The service on a database of its own, over real HTTP, with clients for both surfaces. It is put
 * together, started and stopped by what production does that with; this file alone knows of it.
 */
import {
  createTRPCClient,
  httpLink,
  type TRPCClient,
  TRPCClientError,
  type TRPCLink,
} from '@trpc/client'
import type { AnyTRPCRouter } from '@trpc/server'
import type { Kysely } from 'kysely'
import { pino } from 'pino'
import { withDatabase } from '../../src/cli/command.ts'
import { readConfig } from '../../src/config/config.ts'
import type { ClientTimeouts } from '../../src/http/server/server.ts'
import { createKey as createKeyIn, revokeKey, rotateKey } from '../../src/keys/store.ts'
import { FIRST_REQUEST } from '../../src/petstore/product.ts'
import { resources as petstore } from '../../src/petstore/resources.ts'
import type { Resources } from '../../src/procedure/resources.ts'
import { start } from '../../src/process/start.ts'
import { newDatabase, type TestDatabase } from './database.ts'
import { DATABASE_TIMEOUT } from './process.ts'
import { type RestClient, restClient } from './rest.ts'
import { type AppRouter, transformer } from './router.ts'
import { openSql, type Sql } from './sql.ts'

export interface Service {
  /** The address, without a path. */
  origin: string
  /** The address of `/v1` in links: another one than `origin`, so that a mix-up shows. */
  baseUrl: string
  /** A valid API key. */
  key: string
  rest: RestClient
  trpc: TRPCClient<AppRouter>
  /** The DATABASE_URL. */
  databaseUrl: string
  /** Asks the database beside the service. */
  sql: Sql
  /** What was logged so far, a line of JSON each. */
  logged: string[]
  /** Stops as on SIGTERM, and removes the database. */
  stop(): Promise<void>
}

/** What a test may hand in beside the environment. */
export interface Surroundings {
  /** Is removed when the service stops; else it gets a new one. */
  database?: TestDatabase
  /** Milliseconds that clients have, where a test cannot wait as long as usual. */
  clientTimeouts?: ClientTimeouts
  /** What is served in place of the service's own resources. */
  resources?: Omit<Resources, 'description'>
  /** Brings the tables of those resources. */
  prepare?(db: Kysely<unknown>): Promise<void>
}

const baseUrl = 'https://petstore.example/v1'

/** Starts the service in an environment of these variables, on a free port. */
export async function startService(
  variables: Record<string, string> = {},
  { database, clientTimeouts, resources, prepare = async () => {} }: Surroundings = {},
): Promise<Service> {
  database ??= await newDatabase()
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: database.url,
    BASE_URL: baseUrl,
    DATABASE_TIMEOUT,
    ...variables,
  })
  const logged: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  const { key } = await keys.create(database.url, 'test')
  const { port, stop } = await withDatabase({ databaseUrl: database.url }, async (db) => {
    await prepare(db as Kysely<unknown>) // tables that the service's own types do not know
    return await start(db, config, log, {
      loadResources: async () => ({ ...petstore, ...resources }),
      firstRequest: FIRST_REQUEST,
      ...(clientTimeouts && { clientTimeouts }),
    })
  })
  const sql = await openSql(database.url)
  const origin = `http://127.0.0.1:${port}`
  return {
    origin,
    baseUrl: variables.BASE_URL ?? baseUrl,
    key,
    rest: restClient(origin, key),
    trpc: trpcClient(origin, key),
    databaseUrl: database.url,
    sql,
    logged,
    async stop() {
      await sql.close() // or what it has locked would hold up the stop
      await stop()
      await database.remove()
    },
  }
}

/** A key of the API, made for a test. */
export interface TestKey {
  id: bigint
  key: string
}

/**
 * Makes and ends keys in a database of the service, whether one runs on it or not. It does what
 * `npm run keys` does, without a process for each: the command has tests of its own.
 */
export const keys = {
  /** Makes a key that works until `expiresAt`, or until it is revoked. */
  create: (
    databaseUrl: string,
    name: string,
    expiresAt?: Date,
    readOnly?: boolean,
  ): Promise<TestKey> =>
    withDatabase({ databaseUrl }, (db) =>
      createKeyIn(db, name, { expiresAt, readOnly: readOnly === true }),
    ),

  /** Makes a key in place of another, which works on until `graceUntil`. */
  rotate: (databaseUrl: string, id: bigint, graceUntil: Date): Promise<TestKey> =>
    withDatabase({ databaseUrl }, async (db) => {
      const made = await rotateKey(db, id, graceUntil)
      if (!made) throw new Error(`There is no working key ${id}`)
      return made
    }),

  /** Ends a key. */
  revoke: (databaseUrl: string, id: bigint): Promise<void> =>
    withDatabase({ databaseUrl }, async (db) => {
      if (!(await revokeKey(db, id))) throw new Error(`There is no working key ${id}`)
    }),
}

/**
 * A real tRPC client for the service at `origin`, which serves the service's own router or that of a
 * test; `send` may change what goes over the wire.
 */
export function trpcClient<Served extends AnyTRPCRouter = AppRouter>(
  origin: string,
  key: string,
  send: typeof fetch = fetch,
): TRPCClient<Served> {
  const link = httpLink<AppRouter>({
    url: `${origin}/trpc`,
    transformer,
    headers: { authorization: `Bearer ${key}` },
    fetch: (url, init) => send(url, init as RequestInit),
  })
  // The link is the same for every router of this transformer; only its type names one.
  return createTRPCClient<Served>({ links: [link as unknown as TRPCLink<Served>] })
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

/** A new API key for this database, which is brought to the newest schema. */
export async function createKey(databaseUrl: string): Promise<string> {
  return (await keys.create(databaseUrl, 'test')).key
}
