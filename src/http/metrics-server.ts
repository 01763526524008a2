/** The HTTP server for metrics. It has its own port, which clients of the service need not reach. */
import type { Server } from 'node:http'
import type { Registry } from 'prom-client'
import { http } from './node.ts'

/** Returns a server of `/metrics`, in the text format of Prometheus, that does not listen yet. */
export const createMetricsServer = (registry: Registry): Server =>
  http.createServer(async (req, res) => {
    if (req.url?.split('?')[0] !== '/metrics') return res.writeHead(404).end()
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      return res.writeHead(405, { Allow: 'GET, HEAD' }).end()
    }
    try {
      const text = await registry.metrics()
      res.writeHead(200, { 'Content-Type': registry.contentType }).end(text)
    } catch {
      res.writeHead(500).end()
    }
  })
