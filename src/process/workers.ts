/** Several serving processes on one port, with node:cluster. */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { type Config, ConfigError } from '../config/config.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { WorkerMetrics } from '../observe/worker-metrics.ts'
import type { Composition } from './composition.ts'
import type { Running } from './serve.ts'
import { stopRequested } from './shutdown.ts'

/** Milliseconds before a dead worker is replaced, so that workers that die at once do not spin. */
const REPLACE_DELAY = 1_000

/** Milliseconds that a worker has to send its metrics: one that hangs must not hide those of the others. */
const METRICS_TIMEOUT = 2_000

/** The messages to workers. */
const STOP = 'stop'
const SEND_METRICS = 'send metrics'

/** Starts the workers, and replaces those that die. Throws ConfigError when a worker cannot start. */
export async function startWorkers(config: Config, log: Log): Promise<Running> {
  let stopping = false
  const metrics =
    config.metrics && (await import('../observe/worker-metrics.ts')).createWorkerMetrics()
  // Each worker accepts connections from the shared socket. If the primary process accepted them and
  // passed them on, a connection on its way to a dying worker would never be closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  // A message to a worker that has just died fails, and 'exit' follows. A worker without a pid never ran.
  cluster.on('fork', (worker) => worker.process.pid && worker.on('error', () => {}))
  const workers = Array.from({ length: config.workers }, () => cluster.fork())
  const [port = 0] = await Promise.all(workers.map(listening)).catch((error) => {
    for (const worker of workers) worker.process.kill('SIGKILL')
    throw error
  })
  // Also an answer that comes after its time: it is later than the last known one.
  cluster.on('message', (worker, found: WorkerMetrics) => {
    if (serves(found) && !worker.isDead()) metrics?.keep(worker.id, found)
  })
  const onExit = (worker: Worker, code: number | null, signal: string | null) => {
    metrics?.died(worker.id, { isStopping: stopping })
    if (stopping) return
    log.error({ worker: worker.id, code, signal }, 'A worker died: starting another')
    setTimeout(() => stopping || cluster.fork(), REPLACE_DELAY)
  }
  cluster.on('exit', onExit)
  // While the last ones started, others may have died.
  for (const worker of workers.filter((worker) => worker.isDead())) {
    onExit(worker, worker.process.exitCode, worker.process.signalCode)
  }
  return {
    port,
    async readMetrics() {
      const answers = await Promise.all(
        livingWorkers().map((worker) => answersMetrics(worker, log)),
      )
      const answered = answers.filter(Boolean).length
      return answered === 0 ? undefined : await metrics?.text(answered)
    },
    async stop() {
      stopping = true
      const living = livingWorkers()
      // A worker that was killed a moment ago is unreachable. Without a callback, `send` would throw.
      for (const worker of living) worker.send(STOP, () => {})
      // If this process ends first, for example at a second signal, the workers end with it.
      process.once('exit', () => {
        for (const worker of living) worker.process.kill('SIGKILL')
      })
      await Promise.all(living.map((worker) => ended(worker, log)))
    },
  }
}

const livingWorkers = () =>
  Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)

/** Requests the metrics of a worker. Returns false while it starts, and if it hangs. */
async function answersMetrics(worker: Worker, log: Log): Promise<boolean> {
  const answer = once(worker, 'message', { signal: AbortSignal.timeout(METRICS_TIMEOUT) })
  worker.send(SEND_METRICS, () => {})
  try {
    const [found] = await answer
    return serves(found)
  } catch {
    log.warn({ worker: worker.id }, 'A worker does not answer: its last metrics stand in')
    return false
  }
}

/** A worker that starts answers without metrics. */
const serves = (found: WorkerMetrics) => found.length > 0

/**
 * Resolves when a worker has ended. If its exit code is not 0, which is logged, that of this process
 * becomes 1.
 */
async function ended(worker: Worker, log: Log): Promise<void> {
  if (worker.isDead()) return
  const [code, signal] = await once(worker, 'exit')
  if (code === 0) return
  log.error({ worker: worker.id, code, signal }, 'A worker failed during the stop')
  process.exitCode = 1
}

async function listening(worker: Worker): Promise<number> {
  const failed = once(worker, 'exit').then(() => {
    throw new ConfigError('A worker could not start: its error is above')
  })
  const [{ port }] = await Promise.race([once(worker, 'listening'), failed])
  return port
}

/** Serves in this worker until the primary process requests the stop, or ends. */
export async function work(config: Config, log: Log, composition: Composition): Promise<void> {
  // Signals to the process group reach workers too, but only the primary process requests the stop,
  // possibly before this worker serves.
  process.on('SIGINT', () => {}).on('SIGTERM', () => {})
  // Without this Node ends the worker, in the middle of its requests, when the primary process ends.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  // A message to a primary process that has ended fails, and 'disconnect' follows.
  cluster.worker?.on('error', () => {})
  const stopMessage = new Promise<void>((resolve) => {
    process.on('message', (message) => message === STOP && resolve())
    process.once('disconnect', resolve)
  })
  let metrics: Metrics | undefined
  process.on('message', async (message) => {
    if (message !== SEND_METRICS) return
    // Without an answer, the primary process logs that the last ones stand in.
    const found = metrics ? await metrics.registry.getMetricsAsJSON().catch(() => undefined) : []
    if (found) process.send?.(found, () => {})
  })
  const stopping = stopRequested(stopMessage, config.shutdownTimeout, log)
  // The primary process does not need this module.
  const serving = import('./serve.ts').then(({ serve }) => serve(config, log, composition))
  const running = await Promise.race([serving, stopping])
  if (!running) return // it has no request to finish, and the other workers may wait for SHUTDOWN_DELAY
  metrics = running.metrics
  await stopping
  await running.stop()
}
