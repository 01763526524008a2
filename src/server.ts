/** The process: config → database → migrations → listen → graceful stop. */
import cluster from 'node:cluster'
import { migrate } from '../db/migrate.ts'
import type { Database } from '../db/tables.ts'
import { startWorkers, work } from './cluster.ts'
import { command } from './commands/command.ts'
import type { Config } from './config.ts'
import { createLog } from './log.ts'
import { serveMetrics } from './metrics.ts'
import { type Running, serve } from './serve.ts'
import { startText } from './start-text.ts'
import { signalled, uncaught } from './stop.ts'

await command(async (db, config) => {
  const log = createLog()
  if (cluster.isWorker) return await work(config, log)
  await migrate(db)
  const told = Promise.race([signalled(), uncaught(log)])
  const running = await (config.workers > 1 ? startWorkers : serve)(config, log)
  try {
    await present(running, db, config)
    await told
  } finally {
    await running.stop()
  }
})

/** Shows that the service is there: to Prometheus, and to who started it. */
async function present({ port, readMetrics }: Running, db: Database, config: Config) {
  if (config.metrics) (await serveMetrics(config.metrics, readMetrics)).unref()
  console.log(await startText(db, config, port))
  await db.destroy() // those who serve have connections of their own
}
