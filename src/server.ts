/** The process: config → database → migrations → listen → graceful stop. */
import cluster from 'node:cluster'
import { migrate } from '../db/migrate.ts'
import { work } from './cluster.ts'
import { command } from './commands/command.ts'
import { createLog } from './log.ts'
import { start } from './start.ts'
import { signalled, uncaught } from './stop.ts'

await command(async (db, config) => {
  const log = createLog()
  if (cluster.isWorker) return await work(config, log)
  await migrate(db)
  const told = Promise.race([signalled(), uncaught(log)])
  const { text, stop } = await start(db, config, log)
  console.log(text)
  await db.destroy() // those who serve have connections of their own
  await told
  await stop()
})
