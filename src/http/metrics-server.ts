/** The HTTP server for metrics. It has its own port, which clients of the service need not reach. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { Registry } from 'prom-client'
import { ConfigError } from '../config/environment.ts'
import { http } from './node.ts'

/**
 * Serves `/metrics` on this host and port, and returns the server once it listens. `read` returns the
 * text format of Prometheus. Throws ConfigError if the port is not available.
 */
export async function serveMetrics(
  { host, port }: { host: string; port: number },
  read: () => Promise<string>,
): Promise<Server> {
  const server = http
    .createServer(async (req, res) => {
      if (req.url?.split('?')[0] !== '/metrics') return res.writeHead(404).end()
      if (req.method !== 'GET' && req.method !== 'HEAD') {
        return res.writeHead(405, { Allow: 'GET, HEAD' }).end()
      }
      try {
        const text = await read()
        res.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text)
      } catch {
        res.writeHead(500).end()
      }
    })
    .listen(port, host)
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`METRICS_PORT: cannot listen on ${host}:${port} (${error.code})`)
  })
  return server
}
