/** The service of one process: everything that serves requests, put together and taken apart. */
import type { Server } from 'node:http'
import type { Logger } from 'pino'
import type { PoolUsage } from '../db/mysql.ts'
import type { Database } from '../db/tables.ts'
import { createApp, errorText } from './app.ts'
import type { Config } from './config.ts'
import { createHttpServer, type Patience } from './http/server.ts'
import { createTelemetry } from './http/telemetry.ts'
import { onceStore } from './idempotency/store.ts'
import { createAuthenticator } from './keys/authenticator.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { petStore } from './pets/store.ts'
import { createReadiness, type Readiness } from './readiness.ts'

/** What a service stands on; `usage` is that of the database's pool. The database is migrated. */
export interface Foundation {
  config: Config
  db: Database
  usage: PoolUsage
  log: Logger
  patience?: Patience | undefined
}

export interface Service {
  /** Does not listen yet. */
  server: Server
  readiness: Readiness
  metrics: Metrics | undefined
  /** Ends all that goes on beside the server; the database stays open. */
  close(): Promise<void>
}

/** The service on this foundation. */
export function createService({ config, db, usage, log, patience }: Foundation): Service {
  const metrics = config.metrics && createMetrics(usage)
  const authenticator = createAuthenticator(db, log, metrics?.lookUp)
  const once = onceStore(db, config.idempotencyLifetime, log)
  const readiness = createReadiness(db)
  const telemetry = createTelemetry(log, metrics?.observe ?? (() => {}))
  const app = createApp({
    config,
    pets: petStore(db, once),
    authenticator,
    readiness,
    log,
    telemetry,
  })
  return {
    server: createHttpServer(app, { body: errorText, onRefused: telemetry.onRefused }, patience),
    readiness,
    metrics,
    async close() {
      once.stop()
      await authenticator.stop()
    },
  }
}
