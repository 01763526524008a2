/** The service of a configuration, as it is started: those who serve, the metrics, the first key. */
import { once } from 'node:events'
import type { Database } from '../../db/tables.ts'
import type { Config } from '../config/config.ts'
import { prepareFirstKey } from '../keys/first.ts'
import type { Log } from '../observe/log.ts'
import { startText } from './banner.ts'
import type { Composition } from './composition.ts'
import { cutOff } from './shutdown.ts'

/**
 * Starts the service. `db` is the configured database, migrated; it is not needed afterwards, since
 * those who serve have connections of their own. Throws ConfigError when what is configured cannot be listened on.
 */
export async function start(db: Database, config: Config, log: Log, composition: Composition) {
  const { port, readMetrics, stop } =
    config.workers > 1
      ? await (await import('./workers.ts')).startWorkers(config, log)
      : await (await import('./serve.ts')).serve(config, log, composition)
  try {
    const metrics =
      config.metrics &&
      (await (await import('../http/metrics-server.ts')).serveMetrics(config.metrics, readMetrics))
    // Not before somebody listens: a key is shown once, and a start that fails shows nothing.
    const firstKey = await prepareFirstKey(db, config.databaseUrl)
    return {
      port,
      /** What a person who started it wants to read. */
      text: startText(config.databaseUrl, port, firstKey, composition.firstRequest),
      /** Finishes the requests in flight, then ends all that was started. */
      async stop(): Promise<void> {
        await stop()
        // Last, so that the stop itself can be watched.
        if (!metrics) return
        metrics.close().closeAllConnections()
        await once(metrics, 'close')
      },
    }
  } catch (error) {
    const cancelCutOff = cutOff(config.shutdownTimeout, log)
    await stop()
    cancelCutOff()
    throw error
  }
}
