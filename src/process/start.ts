/** The serving process: its parts, its start and its graceful stop. */
import { once } from 'node:events'
import type { AddressInfo, ListenOptions, Server } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { AnyTRPCRouter } from '@trpc/server'
import { connect, type Database, inTransaction, retry } from '../../db/index.ts'
import type { Config } from '../config/config.ts'
import { UsageError } from '../config/environment.ts'
import { createRateLimit } from '../http/rate-limit.ts'
import { startCleanup } from '../idempotency/cleanup.ts'
import { DatabaseKeyedWrites } from '../idempotency/keyed-writes.ts'
import { createAuthenticator } from '../keys/authenticator.ts'
import { createFirstKey } from '../keys/store.ts'
import type { Log } from '../observe/log.ts'
import { flushSpans } from '../observe/span.ts'
import { Telemetry } from '../observe/telemetry.ts'
import type { Authentication } from '../procedure/authentication.ts'
import type { CreateContext } from '../procedure/call.ts'
import type { ContextFor, StoresOf } from '../procedure/procedure.ts'
import type { Service } from '../surface/pipeline.ts'
import { reporter } from '../surface/report.ts'
import { type Api, createApp } from './app.ts'
import { createReadiness } from './readiness.ts'

/**
 * Maximum number of connections that the system holds until the process accepts them. It drops further
 * ones, whose clients try again only after a second, then after two more, and so on. Linux lowers it to
 * `net.core.somaxconn`, by default 4,096.
 */
const MAX_UNACCEPTED = 65_535

const OTHER_PORT = 'set another port, or 0 for any that is free'

/** What is served: the operations, and their stores on a database or a transaction. */
export interface Product extends Api {
  createStores(db: Database): unknown
  /** Adds to `ctx` of the calls of a request. */
  createContext?: CreateContext
  /** Callers without API keys. */
  authentication?: Authentication
}

/** A product that hands over what the procedures of its router expect. */
export type Whole<Router extends AnyTRPCRouter> = Product & {
  router: Router
  createStores(db: Database): StoresOf<Router>
} & ContextFor<Router>

/**
 * Starts the service on the configured database, whose migrations must be current. Throws UsageError
 * when a port cannot be listened on.
 */
export async function start<Router extends AnyTRPCRouter>(
  config: Config,
  log: Log,
  product: Whole<Router>,
) {
  const { createStores, createContext, authentication, ...api }: Product = product
  const usage = { used: 0, waiting: 0 }
  const db = await connect(config.databaseUrl, {
    timeout: config.databaseTimeout,
    size: config.databasePoolSize,
    usage,
    warn: (message) => log.warn(message),
  })
  const readiness = createReadiness(db, log)
  // Metrics are imported only where they are configured: they cost time and memory.
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : (await import('../observe/metrics.ts')).createMetrics(
          usage,
          async () => app.server.listening && (await readiness.isReady()),
        )
  const authenticator = createAuthenticator(db, log, metrics?.lookUp)
  const stopCleanup = startCleanup(db, config.idempotencyLifetime, log)
  const service: Service = {
    stores: createStores(db),
    transact(work, deadline) {
      const attempt = () => inTransaction(db, (inside) => work(createStores(inside)), deadline)
      return retry(attempt, { repeatable: false, deadline })
    },
    keyedWrites: new DatabaseKeyedWrites(db, createStores, config.idempotencyLifetime),
    createContext,
    authenticator,
    authentication,
    origins: [new URL(config.baseUrl).origin, ...config.corsOrigins].filter((one) => one !== '*'),
    rateLimit: config.rateLimit ? createRateLimit(config.rateLimit, config.trustProxy) : undefined,
    timeout: config.databaseTimeout,
    report: reporter(log, readiness.reportBroken),
  }
  const telemetry = new Telemetry(log, config.trustProxy, metrics)
  const app = createApp(config, api, service, telemetry, readiness, log)
  const { port, listenHost: host, reusePort } = config
  const ofMetrics = { port: config.metricsPort, host: config.metricsHost }
  // The first connection: the log says now, and not with the first call, what is wrong with the server.
  await readiness.isReady()
  if (metrics) await listen('METRICS_PORT', metrics.server, ofMetrics)
  const inUse = port === config.metricsPort ? 'METRICS_PORT is the same' : undefined
  await listen('PORT', app.server, { port, host, backlog: MAX_UNACCEPTED, reusePort }, inUse)
  // Last: a key is shown once, and a start that fails shows nothing.
  const firstKey = await createFirstKey(db)
  // The garbage of the start is 15 MB, which V8 would return only under load. `npm start` exposes `gc`.
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
  return {
    port: (app.server.address() as AddressInfo).port, // a server on a port has no other address
    firstKey,
    /** Reports unready, then accepts no more connections, then finishes the requests in flight. */
    async stop(): Promise<void> {
      log.info('Stopping: finishing the requests in flight')
      readiness.stopping = true
      await wait(config.shutdownDelay)
      // Requests that are still arriving then get 408, so that the rest of the stop has its time.
      await app.stop((config.shutdownTimeout - config.shutdownDelay) / 2)
      stopCleanup()
      await authenticator.stop() // records the last uses of keys, so it needs the database
      await db.destroy()
      await flushSpans()
      log.info('Stopped')
      metrics?.server.close().closeAllConnections() // last, so that Prometheus can observe the stop
    },
  }
}

/**
 * Resolves once the server listens. Throws UsageError, which names the variables of the port and the host, and says
 * `inUse` of a port that is.
 */
async function listen(
  variable: string,
  server: Server,
  options: ListenOptions,
  inUse = 'it is taken',
): Promise<void> {
  await once(server.listen(options), 'listening').catch(({ code }: NodeJS.ErrnoException) => {
    const { port, host } = options
    const place = host && ` of ${host} (${variable === 'PORT' ? 'LISTEN_HOST' : 'METRICS_HOST'})`
    const hint = code === 'EADDRINUSE' ? `: ${inUse}; ${OTHER_PORT}` : ''
    throw new UsageError(`${variable}: cannot listen on ${port}${place ?? ''} (${code})${hint}`)
  })
}
