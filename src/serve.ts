/** One serving process, from listening to its graceful stop. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { UsageError } from './commands/command.ts'
import type { Config } from './config.ts'
import type { Metrics } from './metrics.ts'
import { createService } from './service.ts'

/** What serves, be it in one process or several. */
export interface Running {
  port: number
  /** The metrics, in the text format of Prometheus. */
  readMetrics(): Promise<string>
  /** Stops: not ready any more, then no new connections, then the requests in flight are finished. */
  stop(): Promise<void>
}

/** Serves in this process. Throws UsageError when the port cannot be listened on. */
export async function serve(
  config: Config,
  log: Logger,
): Promise<Running & { metrics: Metrics | undefined }> {
  const { server, readiness, metrics, close } = createService(config, log)
  server.listen(config.port)
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`PORT: cannot listen on ${config.port} (${error.code})`)
  })

  const stop = async () => {
    log.info('Stopping: the requests in flight are finished')
    readiness.stop()
    cutOff(config.shutdownTimeout, log)
    await setTimeout(config.shutdownDelay)
    server.close()
    await once(server, 'close')
    await close()
    log.info('Stopped')
  }
  return {
    port: (server.address() as AddressInfo).port,
    metrics,
    readMetrics: async () => (await metrics?.registry.metrics()) ?? '',
    stop,
  }
}

/** Ends the process after `timeout` milliseconds, whatever is still going on. */
export function cutOff(timeout: number, log: Logger): void {
  globalThis
    .setTimeout(() => {
      log.warn(`Not everything was finished within ${timeout} ms; it is cut off`)
      process.exit()
    }, timeout)
    .unref()
}
