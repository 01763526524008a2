/** The service of a configuration, as it is started: those who serve, the metrics, the words. */
import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Database } from '../db/tables.ts'
import { startWorkers } from './cluster.ts'
import type { Config } from './config.ts'
import type { Patience } from './http/server.ts'
import { serveMetrics } from './metrics.ts'
import { serve } from './serve.ts'
import { startText } from './start-text.ts'

export interface Started {
  /** The port that is listened on. */
  port: number
  /** What a person who started it wants to read. */
  text: string
  /** Finishes the requests in flight, then ends all that was started. */
  stop(): Promise<void>
}

/**
 * Starts the service. `db` is the configured database, migrated: it makes the first key, and is
 * not needed afterwards, since those who serve have connections of their own. `patience` is how
 * long clients may take, where it is to be other than usual; it does not reach workers. Throws
 * ConfigError when what is configured cannot be listened on.
 */
export async function start(
  db: Database,
  config: Config,
  log: Logger,
  patience?: Patience,
): Promise<Started> {
  const { port, readMetrics, stop } =
    config.workers > 1 ? await startWorkers(config, log) : await serve(config, log, patience)
  try {
    const metrics = config.metrics && (await serveMetrics(config.metrics, readMetrics))
    const text = await startText(db, config, port)
    return {
      port,
      text,
      async stop() {
        await stop()
        // Last, so that the stop itself can be watched.
        if (!metrics) return
        metrics.close().closeAllConnections()
        await once(metrics, 'close')
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}
