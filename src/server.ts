/** The process: config → database → migrations → listen → graceful stop. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { migrate } from '../db/migrate.ts'
import { createApp } from './app.ts'
import { command, UsageError } from './commands/command.ts'
import { createHttpServer } from './http/server.ts'
import { createAuthenticator } from './keys/authenticator.ts'
import { startText } from './start-text.ts'

await command(async (db, config) => {
  const log = pino(pino.destination(2))
  await migrate(db)
  const authenticator = createAuthenticator(db, log)
  const server = createHttpServer(createApp({ config, db, authenticator, log }))
  server.listen(config.port)
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`PORT: cannot listen on ${config.port} (${error.code})`)
  })
  const { port } = server.address() as AddressInfo
  console.log(await startText(db, config, port))
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  server.close()
  await once(server, 'close')
  await authenticator.stop()
})
