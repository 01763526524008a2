/** The process, from its start to its stop. */
import cluster from 'node:cluster'
import { type Config, loadConfig } from './config/config.ts'
import { createLog, type Log } from './observe/log.ts'
import { FIRST_REQUEST } from './petstore/product.ts'
import { complain } from './process/complain.ts'
import type { Composition } from './process/composition.ts'
import { cutOff, end, signalled, uncaught } from './process/shutdown.ts'

const composition: Composition = {
  loadResources: async () => (await import('./petstore/resources.ts')).resources,
  firstRequest: FIRST_REQUEST,
}
const log = await createLog()
let config: Config | undefined
try {
  config = loadConfig()
  await (cluster.isWorker
    ? (await import('./process/workers.ts')).work(config, log, composition)
    : run(config, log))
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
    import('./process/start.ts'),
  ])
  const db = await connect(config.databaseUrl)
  try {
    await migrate(db, { onWait: (words) => log.info(words) })
    const told = Promise.race([signalled(log), uncaught(log)])
    void told.then(() => cutOff(config.shutdownTimeout, log))
    const { text, stop } = await start(db, config, log, composition)
    await db.destroy() // those who serve have connections of their own
    console.log(text)
    await told
    await stop()
  } finally {
    await db.destroy()
  }
}
