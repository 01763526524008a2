/**
 * The service on its own database, over real HTTP, with clients for both surfaces. Production code
 * builds, starts and stops it; only this file depends on that code.
 */

import {
  createTRPCClient,
  httpLink,
  type TRPCClient,
  TRPCClientError,
  type TRPCLink,
} from '@trpc/client'
import type { AnyTRPCRouter } from '@trpc/server'
import { pino } from 'pino'
import { afterAll } from 'vitest'
import type { Database } from '../../db/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { createKey as createKeyIn, revokeKey, rotateKey } from '../../src/keys/store.ts'
import * as product from '../../src/petstore/resources.ts'
import { texts } from '../../src/petstore/texts.ts'
import type { Authentication } from '../../src/procedure/authentication.ts'
import type { CreateContext } from '../../src/procedure/call.ts'
import { operationsOf } from '../../src/procedure/definitions.ts'
import { withMigratedDatabase } from '../../src/process/programs.ts'
import { start } from '../../src/process/start.ts'
import { openApiDocument } from '../../src/surface/rest/openapi/document.ts'
import { PUBLISHED } from '../../src/surface/rest/openapi/published.ts'
import { routesOf } from '../../src/surface/rest/routes.ts'
import { newDatabase, type TestDatabase } from './database.ts'
import { DATABASE_TIMEOUT } from './process.ts'
import { keyedFetch, restClient } from './rest.ts'
import { type AppRouter, transformer } from './router.ts'
import { openSql } from './sql.ts'

export type Service = Awaited<ReturnType<typeof startService>>

interface Resources {
  router: AnyTRPCRouter
  createStores(db: Database): object
  createContext?: CreateContext
  authentication?: Authentication
}

const { appRouter: router, ...others } = product

/** The resources of the service, whole, as main.ts serves them. */
export const resourcesOfService: Resources = { router, ...others }

// The tests of everything that is not a resource call by API keys.
const { authentication: _, ...withoutSignIn } = resourcesOfService

/** The options of a test, beside the environment. */
export interface Surroundings {
  /** Its database, which is removed when the service stops. The default is a new one. */
  database?: TestDatabase
  /** The default are those of the service, without a sign-in of its own. */
  resources?: Resources
  /** What its calls send in place of a new API key, such as a token. */
  key?: string
  /** Replaces the document of the router. */
  document?: string
  /** Creates the tables of those resources. */
  prepare?(db: Database): Promise<void>
}

const baseUrl = 'https://petstore.example/v1'

/** Starts the service with these environment variables, on a free port. */
export async function startService(
  variables: Record<string, string> = {},
  { database, resources, key, document, prepare = async () => {} }: Surroundings = {},
) {
  database ??= await newDatabase()
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: database.url,
    BASE_URL: baseUrl,
    DATABASE_TIMEOUT,
    ...variables,
  })
  const logged: string[] = []
  const log = pino(
    { level: 'debug', formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => void logged.push(line) },
  )
  key ??= await createKey(database.url)
  // The types of the service lack the tables that `prepare` creates.
  await withMigratedDatabase({ databaseUrl: database.url }, (db) => prepare(db))
  const served: Resources = resources ?? withoutSignIn
  const routes = routesOf(operationsOf(served.router), PUBLISHED.baseUrl)
  document ??= openApiDocument(routes, texts, PUBLISHED, served.authentication)
  const { port, stop } = await start(config, log, { ...served, document })
  const sql = await openSql(database.url)
  const origin = `http://127.0.0.1:${port}`
  return {
    origin,
    /** The URL of `/v1` in links. It differs from `origin`, so that a mix-up fails a test. */
    baseUrl: variables.BASE_URL ?? baseUrl,
    /** A valid API key, unless the test has another one. */
    key,
    fetch: keyedFetch(origin, key),
    rest: restClient(origin, key),
    trpc: trpcClient(origin, key),
    databaseUrl: database.url,
    /** Runs SQL on a separate connection to the database. */
    sql,
    /** The lines of the log so far, each in JSON. */
    logged,
    /** Stops the service as SIGTERM does, and removes the database. */
    async stop() {
      await sql.close() // its locks would block the stop
      await stop()
      await database.remove()
    },
  }
}

/** Starts the service for all tests of a file or a suite, and stops it after them. */
export async function serviceForFile(
  ...parameters: Parameters<typeof startService>
): Promise<Service> {
  const service = await startService(...parameters)
  afterAll(() => service.stop())
  return service
}

/**
 * Creates and revokes keys in a database of the service, whether or not a service runs on it. It does
 * the same as `npm run keys` without a process for each call; the command has its own tests.
 */
export const keys = {
  /** Creates a key that works for `lifetime` milliseconds or until it is revoked. */
  create: (databaseUrl: string, name: string, lifetime?: number, readOnly?: boolean) =>
    withMigratedDatabase({ databaseUrl }, (db) =>
      createKeyIn(db, name, { lifetime, readOnly: readOnly === true }),
    ),

  /** Creates a key that replaces another one, which works for `grace` more milliseconds. */
  rotate: (databaseUrl: string, id: bigint, grace: number) =>
    withMigratedDatabase({ databaseUrl }, async (db) => {
      const made = await rotateKey(db, id, grace)
      if (!made) throw new Error(`There is no working key ${id}`)
      return made
    }),

  /** Revokes a key. */
  revoke: (databaseUrl: string, id: bigint): Promise<void> =>
    withMigratedDatabase({ databaseUrl }, async (db) => {
      if (!(await revokeKey(db, id))) throw new Error(`There is no working key ${id}`)
    }),
}

/**
 * Makes a real tRPC client for the service at `origin`, with the router of the service or of a
 * test; `send` may change the requests.
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
  // The link works for every router with this transformer; only its type depends on the router.
  return createTRPCClient<Served>({ links: [link as unknown as TRPCLink<Served>] })
}

/** The code, status and message of the error of a tRPC call. Fails if the call succeeds. */
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

/** Migrates this database, and creates an API key. */
export async function createKey(databaseUrl: string): Promise<string> {
  return (await keys.create(databaseUrl, 'test')).key
}
