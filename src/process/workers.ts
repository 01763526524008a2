/** Several serving processes on one port, with node:cluster. */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { type Config, ConfigError } from '../config/config.ts'
import type { Log } from '../observe/log.ts'
import type { Composition } from './composition.ts'
import type { Running } from './serve.ts'
import { cutOff, uncaught } from './shutdown.ts'

/** Milliseconds before a worker that died is replaced, so that one that cannot live does not spin. */
const REPLACE_DELAY = 1_000

const STOP = 'stop'

/** Starts the workers, and replaces those that die. Throws ConfigError when one cannot start. */
export async function startWorkers(config: Config, log: Log): Promise<Running> {
  // Here, too, what is not configured is not loaded.
  const registry = config.metrics && new (await import('prom-client')).AggregatorRegistry()
  let stopping = false
  // The workers share the listening socket, and each takes its connections itself. Where the primary
  // process takes and hands them on, one that is on its way to a worker that dies is never closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const workers = Array.from({ length: config.workers }, () => cluster.fork())
  const [port = 0] = await Promise.all(workers.map(listening)).catch((error) => {
    for (const worker of workers) worker.process.kill('SIGKILL')
    throw error
  })
  cluster.on('exit', (worker, code, signal) => {
    if (stopping) return
    log.error({ worker: worker.id, code, signal }, 'A worker died; it is replaced')
    setTimeout(() => stopping || cluster.fork(), REPLACE_DELAY)
  })
  return {
    port,
    readMetrics: async () => (await registry?.clusterMetrics()) ?? '',
    async stop() {
      stopping = true
      const living = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
      // One that was killed a moment ago hears nothing: without a function, that is thrown.
      for (const worker of living) worker.send(STOP, () => {})
      // Whatever ends this process before they have ended, a second signal above all, ends them.
      process.once('exit', () => {
        for (const worker of living) worker.process.kill('SIGKILL')
      })
      await Promise.all(living.map(ended))
    },
  }
}

/** Resolves when a worker has ended; one that did not finish what it had to lets the process end with 1. */
async function ended(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const [code] = await once(worker, 'exit')
  if (code !== 0) process.exitCode = 1
}

async function listening(worker: Worker): Promise<number> {
  const failed = once(worker, 'exit').then(() => {
    throw new ConfigError('A worker could not start: see above')
  })
  const [address] = await Promise.race([once(worker, 'listening'), failed])
  return address.port
}

/** Serves in this worker until the primary process says so, or is gone. */
export async function work(config: Config, log: Log, composition: Composition): Promise<void> {
  // Or Node would end this process, in the middle of its requests, when the primary is gone.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  // Signals to the whole group reach workers too; it is the primary that says when to stop. It may
  // say so before this one serves.
  process.on('SIGINT', () => {}).on('SIGTERM', () => {})
  const stopped = new Promise<void>((resolve) => {
    process.on('message', (message) => message === STOP && resolve())
    process.once('disconnect', resolve)
  })
  const told = Promise.race([stopped, uncaught(log)])
  void told.then(() => cutOff(config.shutdownTimeout, log))
  try {
    // The primary process needs nothing of it.
    const serving = import('./serve.ts').then(({ serve }) => serve(config, log, composition))
    const running = await Promise.race([serving, told])
    if (!running) return // it has nothing to finish, and the others are in their SHUTDOWN_DELAY
    const { metrics, stop } = running
    if (metrics) {
      const { AggregatorRegistry } = await import('prom-client')
      AggregatorRegistry.setRegistries(metrics.registry)
      new AggregatorRegistry() // listens for the primary's questions
    }
    await told
    await stop()
  } finally {
    if (process.connected) process.disconnect?.()
  }
}
