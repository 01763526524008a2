/** A trace collector that stays unreachable is logged once, and again after a recovery. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { Log } from '../../src/observe/log.ts'
import { type Collector, startCollector } from '../support/collector.ts'
import { eventually } from '../support/eventually.ts'

const variables = {
  OTEL_EXPORTER_OTLP_TIMEOUT: '100',
  OTEL_BSP_SCHEDULE_DELAY: '10',
}

let collector: Collector
beforeAll(async () => {
  collector = await startCollector()
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await collector.stop()
})

test('an outage of minutes has one warning, the next outage another one, once a minute at most', async () => {
  const { startTracing } = await import('../../src/observe/tracing.ts')
  const log = { warn: vi.fn(), info: vi.fn() }
  const tracing = startTracing({ sampler: 'always_on', ratio: 1 }, log as unknown as Log)
  onTestFinished(() => tracing.stop())
  const now = performance.now.bind(performance)
  let later = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  onTestFinished(() => clock.mockRestore())

  /** Sends a span, and waits until the collector has answered with this status. */
  const send = async (status: number) => {
    collector.status = status
    const requests = collector.headers.length
    const span = { operation: 'x', route: '/', method: 'GET', path: '/', scheme: 'http' }
    tracing.begin({ ...span, headers: {} }).end(200)
    await eventually(() => expect(collector.headers.length).toBeGreaterThan(requests))
  }
  const warnings = async (count: number) => {
    await eventually(() => expect(log.warn).toHaveBeenCalledTimes(count))
    later += 61_000
  }
  await send(400)
  await warnings(1)
  await send(400)
  await send(400)
  await warnings(1)
  await send(200)
  await eventually(() => expect(log.info).toHaveBeenCalledTimes(1))
  expect(log.info).toHaveBeenCalledWith('The trace collector is reachable again')
  later += 61_000
  await send(400)
  await eventually(() => expect(log.warn).toHaveBeenCalledTimes(2))
  await send(200)
  await eventually(() => expect(log.info).toHaveBeenCalledTimes(2))
  // A third outage within the minute is logged when the minute is over.
  later += 50_000
  await send(400)
  await send(400)
  expect(log.warn).toHaveBeenCalledTimes(2)
  later += 11_000
  await send(400)
  await warnings(3)
})
