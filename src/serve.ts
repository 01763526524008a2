/** One serving process, from listening to its graceful stop. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { connect } from '../db/connect.ts'
import { type Config, ConfigError } from './config.ts'
import type { Patience } from './http/server.ts'
import type { Metrics } from './metrics.ts'
import { createService } from './service.ts'

/** Milliseconds between two rounds of closing connections that have become idle, when stopping. */
const CLOSE_INTERVAL = 50

/** What serves, be it in one process or several. */
export interface Running {
  port: number
  /** The metrics, in the text format of Prometheus. */
  readMetrics(): Promise<string>
  /** Stops: not ready any more, then no new connections, then the requests in flight are finished. */
  stop(): Promise<void>
}

/**
 * Serves in this process. `patience` is how long clients may take, where it is to be other than
 * usual. Throws ConfigError when the port cannot be listened on.
 */
export async function serve(
  config: Config,
  log: Logger,
  patience?: Patience,
): Promise<Running & { metrics: Metrics | undefined }> {
  const usage = { used: 0, waiting: 0 }
  const db = connect(config.databaseUrl, { timeout: config.databaseTimeout, usage })
  const { server, readiness, metrics, close } = createService({ config, db, usage, log, patience })
  server.listen(config.port)
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`PORT: cannot listen on ${config.port} (${error.code})`)
  })

  const stop = async () => {
    log.info('Stopping: the requests in flight are finished')
    readiness.stop()
    const cancelCutOff = cutOff(config.shutdownTimeout, log)
    await wait(config.shutdownDelay)
    server.close()
    // A connection that was busy then would be kept open for its next request.
    const closing = setInterval(() => server.closeIdleConnections(), CLOSE_INTERVAL)
    await once(server, 'close')
    clearInterval(closing)
    await close()
    await db.destroy()
    cancelCutOff()
    log.info('Stopped')
  }
  return {
    port: (server.address() as AddressInfo).port,
    metrics,
    readMetrics: async () => (await metrics?.registry.metrics()) ?? '',
    stop,
  }
}

/**
 * Ends the process after `timeout` milliseconds, whatever is still going on, unless the function
 * that it gives is called before.
 */
export function cutOff(timeout: number, log: Logger): () => void {
  const exit = () => {
    log.warn(`Not everything was finished within ${timeout} ms; it is cut off`)
    process.exit()
  }
  const timer = setTimeout(exit, timeout).unref()
  return () => clearTimeout(timer)
}
