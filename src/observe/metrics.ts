/**
 * The metrics for Prometheus, named by https://prometheus.io/docs/practices/naming/, and their HTTP server. It
 * has its own port, which clients of the service need not reach.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Usage } from '../../db/index.ts'
import { NAME } from '../config/product.ts'

/** What the metrics show of a finished request, or of a call in a batch; its record documents the parts. */
interface Observation {
  surface: string
  operation: string | undefined
  status: number
  duration: number
}

// Loaded lazily, as in src/http/server.ts.
const { createServer } = process.getBuiltinModule('node:http')

/**
 * Returns the metrics of one process, and a server of `/metrics` that does not listen yet. `usage` counts the
 * connections of its database pool. The server has `/readyz`, too: on the port of the service, another process may
 * answer.
 */
export function createMetrics(usage: Usage, isReady: () => Promise<boolean>) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  // Sums of others, whose names are those of counters: `promtool check metrics` refuses them.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
  }
  const labelNames = ['surface', 'operation', 'status'] as const
  const calls = new Counter({
    name: `${NAME}_requests_total`,
    help: 'Calls, by surface, operation and HTTP status: each one of a batch counts',
    labelNames,
    registers,
  })
  const durations = new Histogram({
    name: `${NAME}_request_duration_seconds`,
    help: 'How long requests took, by surface, operation and HTTP status: a batch is one',
    labelNames,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const lookUps = new Counter({
    name: `${NAME}_key_lookups_total`,
    help: 'Look-ups of API keys, by whether the cache knew the answer',
    labelNames: ['cache'] as const,
    registers,
  })
  for (const state of ['used', 'waiting'] as const) {
    new Gauge({
      name: `${NAME}_database_connections_${state}`,
      help: state === 'used' ? 'Connections in use' : 'Requests that wait for a connection',
      registers,
      collect() {
        this.set(usage[state])
      },
    })
  }
  const server = createServer(async (req, res) => {
    const path = req.url?.split('?')[0]
    if (path === '/readyz') return res.writeHead((await isReady()) ? 200 : 503).end()
    if (path !== '/metrics') return res.writeHead(404).end()
    try {
      const text = await registry.metrics()
      res.writeHead(200, { 'Content-Type': registry.contentType }).end(text)
    } catch {
      res.writeHead(500).end()
    }
  })
  return {
    server,
    count: ({ surface, operation = 'none', status }: Observation) =>
      calls.inc({ surface, operation, status }),
    time: ({ surface, operation = 'none', status, duration }: Observation) =>
      durations.observe({ surface, operation, status }, duration / 1000),
    /** Counts a look-up of an API key: a hit or a miss of the cache. */
    lookUp: (wasCached: boolean) => lookUps.inc({ cache: wasCached ? 'hit' : 'miss' }),
  }
}
