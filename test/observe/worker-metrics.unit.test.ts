/** The metrics of workers as those of one service: what remains of dead ones. */
import { expect, test } from 'vitest'
import { createMetrics } from '../../src/observe/metrics.ts'
import { createWorkerMetrics } from '../../src/observe/worker-metrics.ts'

/** The metrics of a worker that has answered this number of requests, and uses three connections. */
function worker(requests: number) {
  const { registry, observe } = createMetrics({ used: 3, waiting: 0 })
  for (let request = 0; request < requests; request++) {
    observe({ surface: 'rest', operation: 'listPets', status: 200, duration: 2 })
  }
  return registry.getMetricsAsJSON()
}

const labels = 'surface="rest",operation="listPets",status="200"'

test('counters and histograms of dead workers remain, their gauges do not', async () => {
  const metrics = createWorkerMetrics()
  metrics.keep(1, await worker(5))
  metrics.keep(2, await worker(7))
  metrics.died(1, { isStopping: true })
  metrics.died(9, { isStopping: false }) // it never answered
  metrics.keep(2, await worker(8))
  const text = await metrics.text(1)
  expect(text).toContain(`petstore_requests_total{${labels}} 13\n`)
  expect(text).toContain(`petstore_request_duration_seconds_count{${labels}} 13\n`)
  expect(text).toContain(`petstore_request_duration_seconds_bucket{le="0.0025",${labels}} 13\n`)
  expect(text).toContain('petstore_database_connections_used 3\n')
  expect(text).toContain('petstore_workers 1\n')
  expect(text.match(/^process_start_time_seconds .+$/gm)).toHaveLength(1)
  expect(text).toContain('petstore_worker_deaths_total 1\n')
})

test('many deaths leave one sum', async () => {
  const metrics = createWorkerMetrics()
  const size = async () => (await metrics.text(1)).split('\n').length
  metrics.keep(0, await worker(1))
  const before = await size()
  for (let id = 1; id <= 50; id++) {
    metrics.keep(id, await worker(1))
    metrics.died(id, { isStopping: false })
  }
  expect(await size()).toBe(before)
  expect(await metrics.text(1)).toContain(`petstore_requests_total{${labels}} 51\n`)
})
