/** The process, from its start to its stop. */
import cluster from 'node:cluster'
import type { Config } from './config/config.ts'
import { createLog, type Log } from './observe/log.ts'
import { FIRST_REQUEST } from './petstore/product.ts'
import type { Composition } from './process/composition.ts'
import { program } from './process/program.ts'
import { exit, exitAfter, stopSignal, uncaughtException } from './process/shutdown.ts'

const composition: Composition = {
  loadResources: async () => (await import('./petstore/resources.ts')).resources,
  firstRequest: FIRST_REQUEST,
}
const log = await createLog()
await program(async (config) =>
  cluster.isWorker
    ? (await import('./process/workers.ts')).work(config, log, composition)
    : run(config, log),
)
// A connection to a database or a trace collector that hangs would keep the process alive.
exit(log)

async function run(config: Config, log: Log): Promise<void> {
  // Imported after the configuration is read, so that a wrong variable is reported at once.
  const [{ connect }, { migrate }, { start }] = await Promise.all([
    import('../db/connect.ts'),
    import('../db/migrate.ts'),
    import('./process/start.ts'),
  ])
  const db = await connect(config.databaseUrl)
  try {
    await migrate(db, { onWait: (text) => log.info(text) })
    const stopRequested = Promise.race([stopSignal(log), uncaughtException(log)])
    void stopRequested.then(() => exitAfter(config.shutdownTimeout, log))
    const { text, stop } = await start(db, config, log, composition)
    await db.destroy() // each serving process has connections of its own
    console.log(text)
    await stopRequested
    await stop()
  } finally {
    await db.destroy()
  }
}
