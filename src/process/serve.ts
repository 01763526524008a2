/** One serving process: its parts, its start and its graceful stop. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '../../db/connect.ts'
import { retry } from '../../db/retry.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { createRateLimit } from '../http/rate-limit.ts'
import { trustOf } from '../http/request.ts'
import { createTelemetry } from '../http/request-log.ts'
import { createIdempotency } from '../idempotency/store.ts'
import { createAuthenticator } from '../keys/authenticator.ts'
import { type Log, oncePerSecond } from '../observe/log.ts'
import { flushSpans } from '../observe/span.ts'
import { reporter, type Service } from '../surface/pipeline.ts'
import { createApp } from './app.ts'
import type { Composition } from './composition.ts'
import { createReadiness } from './readiness.ts'

/**
 * Maximum number of connections that the system holds until the process accepts them. It drops further
 * ones, whose clients try again only after a second, then after two more, and so on. Linux lowers it to
 * `net.core.somaxconn`, by default 4,096.
 */
const MAX_UNACCEPTED = 65_535

/** Open files that are kept for the database, the metrics, and the files that the service reads. */
const RESERVED_FILES = 64

const PORT_IN_USE =
  'another program listens there; set another port, or PORT=0 for any that is free'

const TOO_MANY_CONNECTIONS =
  'New connections were closed: the process may not have more open files (ulimit -n)'

/** The running service. */
export interface Running {
  port: number
  /** Returns the metrics in Prometheus's text format; undefined when they are off. */
  readMetrics: (() => Promise<string>) | undefined
  /** Reports unready, then accepts no more connections, then finishes the requests in flight. */
  stop(): Promise<void>
}

/** Serves in this process, on a migrated database. Throws ConfigError if it cannot listen on the port. */
export async function serve(
  config: Config,
  log: Log,
  { loadResources, clientTimeouts }: Composition,
): Promise<Running> {
  const resources = await loadResources()
  const { createStores } = resources
  const usage = { used: 0, waiting: 0 }
  const db = await connect(config.databaseUrl, {
    timeout: config.databaseTimeout,
    size: config.databasePoolSize,
    usage,
    warn: (message) => log.warn(message),
  })
  // Metrics are imported only where they are configured: they cost time and memory.
  const metrics = config.metrics && (await import('../observe/metrics.ts')).createMetrics(usage)
  const authenticator = createAuthenticator(db, log, metrics?.lookUp)
  const idempotency = createIdempotency(db, createStores, config.idempotencyLifetime, log)
  const readiness = createReadiness(db, log)
  const trust = trustOf(config.trustProxy)
  const service: Service = {
    stores: createStores(db),
    transact(work, deadline) {
      const attempt = () => inTransaction(db, (inside) => work(createStores(inside)), deadline)
      return retry(attempt, { repeatable: false, deadline })
    },
    idempotency,
    authenticator,
    rateLimit:
      config.rateLimit === undefined ? undefined : createRateLimit(config.rateLimit, trust),
    timeout: config.databaseTimeout,
    report: reporter(log, readiness.reportBroken),
  }
  const telemetry = createTelemetry(log, trust, metrics?.observe)
  const app = createApp({ config, resources, service, telemetry, readiness, clientTimeouts })
  const { server } = app
  // Beyond the limit on open files, Node closes connections in silence, and the database has none, too.
  server.maxConnections = maxConnections()
  server.on(
    'drop',
    oncePerSecond((connections) => log.error({ connections }, TOO_MANY_CONNECTIONS)),
  )
  const { port, listenHost, reusePort } = config
  server.listen({ port, host: listenHost, backlog: MAX_UNACCEPTED, reusePort })
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const place = listenHost === undefined ? port : `${port} of ${listenHost} (LISTEN_HOST)`
    const problem = `PORT: cannot listen on ${place} (${error.code})`
    throw new ConfigError(error.code === 'EADDRINUSE' ? `${problem}: ${PORT_IN_USE}` : problem)
  })

  const stop = async () => {
    log.info('Stopping: finishing the requests in flight')
    readiness.stopping = true
    await wait(config.shutdownDelay)
    // Requests that are still arriving then get 408, so that the rest of the stop has its time.
    await app.stop((config.shutdownTimeout - config.shutdownDelay) / 2)
    idempotency.stop()
    await authenticator.stop() // records the last uses of keys, so it needs the database
    await db.destroy()
    await flushSpans()
    log.info('Stopped')
  }
  // The garbage of the start is 15 MB, which V8 would return only under load. `npm start` exposes `gc`.
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
  return {
    port: (server.address() as AddressInfo).port, // a server on a port has no other address
    readMetrics: metrics && (() => metrics.registry.metrics()),
    stop,
  }
}

/** Returns how many connections the process may hold by its limit on open files, which Linux shows. */
function maxConnections(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY
  const files = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  const limit = Number(files ?? Number.POSITIVE_INFINITY)
  return Math.max(limit - RESERVED_FILES, Math.floor(limit / 2))
}
