/** The start of the service: the serving process, the metrics, the first API key. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Database } from '../../db/tables.ts'
import { describeUrl } from '../../db/url.ts'
import type { Config } from '../config/config.ts'
import { TITLE } from '../config/product.ts'
import { type FirstKey, prepareFirstKey } from '../keys/first.ts'
import type { Log } from '../observe/log.ts'
import type { Composition } from './composition.ts'
import { serve } from './serve.ts'

/**
 * Starts the service on `db`, the configured database, whose migrations must be current. The caller
 * may close `db` afterwards: the serving process has connections of its own. Throws ConfigError when
 * a port cannot be listened on.
 */
export async function start(db: Database, config: Config, log: Log, composition: Composition) {
  const { port, readMetrics, stop } = await serve(config, log, composition)
  try {
    const metrics =
      config.metrics &&
      readMetrics &&
      (await (await import('../http/metrics-server.ts')).serveMetrics(config.metrics, readMetrics))
    // Last: a key is shown once, and a start that fails shows nothing.
    const firstKey = await prepareFirstKey(db, config.databaseUrl)
    return {
      port,
      /** The start-up text for the terminal. */
      text: startText(config.databaseUrl, port, firstKey, composition.firstRequest),
      /** Finishes the requests in flight, then stops everything. */
      async stop(): Promise<void> {
        await stop()
        // Last, so that Prometheus can observe the stop.
        if (!metrics) return
        metrics.close().closeAllConnections()
        await once(metrics, 'close')
      },
    }
  } catch (error) {
    // A request that does not end must not hide the reason.
    await Promise.race([stop(), setTimeout(config.shutdownTimeout)])
    throw error
  }
}

/** The image has no examples, nor what runs the npm scripts. */
const isImage = !existsSync(new URL('../../examples/', import.meta.url))

/** Returns the URLs, the database, the API key, a first request to paste, and the next steps. */
function startText(
  databaseUrl: string,
  port: number,
  firstKey: FirstKey,
  { path, body }: Composition['firstRequest'],
): string {
  const local = `http://localhost:${port}`
  const { engine, location } = describeUrl(databaseUrl)
  const storefront = port === 3000 ? 'npm run storefront' : `PORT=${port} npm run storefront`
  return [
    `${TITLE} is running.`,
    ``,
    `  REST      ${local}/v1${path}`,
    `  tRPC      ${local}/trpc`,
    `  OpenAPI   ${local}/v1/openapi.json`,
    `  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${location}`,
    ``,
    ...keyLines(firstKey),
    ``,
    `A first request:`,
    ``,
    `  curl ${local}/v1${path} -H 'Authorization: Bearer ${firstKey.key ?? '<API_KEY>'}' \\`,
    `    -H 'Content-Type: application/json' -d '${body}' -w '\\n'`,
    ``,
    `All operations, to read and to try:`,
    ``,
    `  ${local}/docs/`,
    ``,
    ...(isImage
      ? []
      : [
          `In another terminal:`,
          ``,
          `  ${'npm run seed'.padEnd(storefront.length)}   adds sample data`,
          `  ${storefront}   starts an example shop`,
          ``,
        ]),
  ].join('\n')
}

function keyLines({ exists, key }: FirstKey): string[] {
  if (key) return [`  API key   ${key}`, `            Keep it: it is not shown again.`]
  const command = `${isImage ? 'node src/cli/keys.ts' : 'npm run keys --'} create NAME`
  return exists
    ? [`  API key   created before; for a new one: ${command}`]
    : [`  API key   none yet; create one: ${command}`]
}
