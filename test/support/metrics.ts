/** The metrics of a service, read as Prometheus reads them. */
import { freePort } from './mysql.ts'

export interface MetricsReader {
  /** The environment variables for the service. */
  variables: { METRICS_PORT: string }
  /** The value of a metric, given by its name and labels; 0 if it does not exist yet. */
  read(name: string): Promise<number>
}

/** Metrics for one service, on a free port. */
export async function newMetrics(): Promise<MetricsReader> {
  const port = String(await freePort())
  return {
    variables: { METRICS_PORT: port },
    async read(name) {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      const line = text.split('\n').find((line) => line.startsWith(`${name} `))
      return line === undefined ? 0 : Number(line.slice(name.length + 1))
    },
  }
}
