/** The metrics of all workers, as those of one service. */
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import { NAME } from '../config/product.ts'

/** The metrics of one worker, as `getMetricsAsJSON` of its registry returns them. */
export type WorkerMetrics = MetricObjectWithValues<MetricValue<string>>[]

/**
 * Returns a keeper of the last known metrics of each worker. A sum that falls would look to Prometheus
 * like a counter that starts anew, so a worker that does not answer counts with its last values, and the
 * counters and histograms of dead workers stay.
 */
export function createWorkerMetrics() {
  const last = new Map<number, WorkerMetrics>()
  /** The sums of all dead workers: one entry for each metric, however many have died. */
  let dead: WorkerMetrics = []
  const { own, workers, deaths } = ownMetrics()
  return {
    /** Takes the metrics of a living worker, in place of its previous ones. */
    keep(id: number, metrics: WorkerMetrics): void {
      last.set(id, metrics)
    },
    /** Drops the gauges of a worker that has died. Counts the death unless it was part of a stop. */
    died(id: number, { isStopping }: { isStopping: boolean }): void {
      if (!isStopping) deaths.inc()
      // The library declares the types as numbers, but they are their names.
      const sums = last.get(id)?.filter(({ type }) => String(type) !== 'gauge')
      last.delete(id)
      if (sums) dead = merged([dead, sums])
    },
    /** Returns the text format of Prometheus. `answered` is the number of workers that have answered. */
    async text(answered: number): Promise<string> {
      workers.set(answered)
      const ofWorkers = AggregatorRegistry.aggregate([...last.values(), dead])
      return (await ofWorkers.metrics()) + (await own.metrics())
    },
  }
}

/** Returns the metrics that only the primary process knows. */
function ownMetrics() {
  const own = new Registry()
  const registers = [own]
  // The aggregation omits that of the workers. A number that differed at each reading would look like
  // restarts.
  const started = new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start time of the primary process since unix epoch in seconds.',
    registers,
  })
  started.set(Math.round(performance.timeOrigin / 1_000))
  const workers = new Gauge({
    name: `${NAME}_workers`,
    help: 'Workers that answered this request for metrics',
    registers,
  })
  const deaths = new Counter({
    name: `${NAME}_worker_deaths_total`,
    help: 'Workers that died while the service was not stopping',
    registers,
  })
  return { own, workers, deaths }
}

// The aggregation returns objects that it takes itself; the type of the library does not say so.
const merged = (all: WorkerMetrics[]) =>
  AggregatorRegistry.aggregate(all).getMetricsAsArray() as WorkerMetrics
