/** The service of one process: everything that serves requests, put together and taken apart. */
import type { Server } from 'node:http'
import type { Logger } from 'pino'
import { connect } from '../db/connect.ts'
import type { Database } from '../db/tables.ts'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { createHttpServer, type Patience } from './http/server.ts'
import { onceStore } from './idempotency/store.ts'
import { createAuthenticator } from './keys/authenticator.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { petStore } from './pets/store.ts'
import { createReadiness, type Readiness } from './readiness.ts'

export interface Service {
  /** Does not listen yet. */
  server: Server
  db: Database
  readiness: Readiness
  metrics: Metrics | undefined
  /** Ends all that goes on beside the server, and the connections to the database. */
  close(): Promise<void>
}

/** The service with this configuration, on a database that is migrated. */
export function createService(config: Config, log: Logger, patience?: Patience): Service {
  const usage = { used: 0, waiting: 0 }
  const db = connect(config.databaseUrl, { timeout: config.databaseTimeout, usage })
  const metrics = config.metrics && createMetrics(usage)
  const authenticator = createAuthenticator(db, log, metrics?.lookUp)
  const once = onceStore(db, config.idempotencyLifetime, log)
  const readiness = createReadiness(db)
  const app = createApp({
    config,
    pets: petStore(db, once),
    authenticator,
    readiness,
    log,
    observe: metrics?.observe ?? (() => {}),
  })
  return {
    server: createHttpServer(app, patience),
    db,
    readiness,
    metrics,
    async close() {
      once.stop()
      await authenticator.stop()
      await db.destroy()
    },
  }
}
