/** The process, from its start to its stop. */
import cluster from 'node:cluster'
import { complain } from './complaint.ts'
import { type Config, loadConfig } from './config.ts'
import { createLog, type Log } from './log.ts'
import { cutOff, end, signalled, uncaught } from './stop.ts'

const log = await createLog()
let config: Config | undefined
try {
  config = loadConfig()
  await (cluster.isWorker ? (await import('./cluster.ts')).work(config, log) : run(config, log))
} catch (error) {
  complain(error, config)
}
// Connections to a database or a collector of traces that hangs would keep the process alive.
end(log)

async function run(config: Config, log: Log): Promise<void> {
  // A wrong variable is told without what speaks to databases, and what serves, being loaded.
  const [{ connect }, { migrate }, { start }] = await Promise.all([
    import('../db/connect.ts'),
    import('../db/migrate.ts'),
    import('./start.ts'),
  ])
  const db = await connect(config.databaseUrl)
  try {
    await migrate(db, { onWait: (words) => log.info(words) })
    const told = Promise.race([signalled(log), uncaught(log)])
    void told.then(() => cutOff(config.shutdownTimeout, log))
    const { text, stop } = await start(db, config, log)
    await db.destroy() // those who serve have connections of their own
    console.log(text)
    await told
    await stop()
  } finally {
    await db.destroy()
  }
}
