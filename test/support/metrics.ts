/** The metrics of a service, read as Prometheus reads them. */
import { freePort } from './mysql.ts'

/** Returns the value of a metric, given by its name and labels, in a text; 0 if it does not exist yet. */
export const metricIn = (text: string, name: string): number => {
  const line = text.split('\n').find((line) => line.startsWith(`${name} `))
  return line === undefined ? 0 : Number(line.slice(name.length + 1))
}

/** Metrics for one service, on a free port. */
export async function newMetrics() {
  const port = String(await freePort())
  const url = `http://127.0.0.1:${port}/metrics`
  const text = async () => await (await fetch(url)).text()
  return {
    /** The environment variables for the service. */
    variables: { METRICS_PORT: port },
    url,
    text,
    read: async (name: string) => metricIn(await text(), name),
  }
}
