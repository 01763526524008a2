/** The process: config → database → migrations → listen → graceful stop. */
import cluster from 'node:cluster'
import { migrate } from '../db/migrate.ts'
import { startWorkers, work } from './cluster.ts'
import { command } from './commands/command.ts'
import { createLog } from './log.ts'
import { serveMetrics } from './metrics.ts'
import { serve } from './serve.ts'
import { startText } from './start-text.ts'
import { signalled, uncaught } from './stop.ts'

await command(async (db, config) => {
  const log = createLog()
  if (cluster.isWorker) return await work(config, log)
  await migrate(db)
  const { port, readMetrics, stop } = await (config.workers > 1 ? startWorkers : serve)(config, log)
  const metrics = config.metrics && (await serveMetrics(config.metrics, readMetrics))
  console.log(await startText(db, config, port))
  await db.destroy() // those who serve have connections of their own
  await Promise.race([signalled(), uncaught(log)])
  await stop()
  metrics?.close()
})
