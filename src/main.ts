/** The process, from its start to its stop. */
import { executionAsyncResource } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { TITLE } from './config/product.ts'
import { createLog } from './observe/log.ts'
import { migrateDatabase, onWarning, print, program, refuseArguments } from './process/programs.ts'
import { stopRequested, stopSignal } from './process/shutdown.ts'

// Node makes an object for each task of nextTick. If a full garbage collection finds none, V8 forgets their
// shape for good: a task then costs 400 ns instead of 80, and a request 3 to 9 % more. So one of them is kept.
const keptTasks: object[] = []
process.nextTick(() => keptTasks.push(executionAsyncResource()))

const log = await createLog()
onWarning((warning) => log.warn({ err: warning }, 'Node warns'))

/** Reports why the service ends: to people as it is, to a collector of logs as one entry. */
function reportFatal(error: unknown): void {
  if (process.stderr.isTTY) console.error(error)
  else log.fatal(error)
}

await program(async (config) => {
  refuseArguments()
  log.level = config.logLevel
  for (const warning of config.warnings) log.warn(warning)
  let stopping: Promise<void> | undefined
  // During the migrations a signal ends the process at once. Without this, process 1 of a container
  // would ignore it.
  const signalled = stopSignal()
  void signalled.then(() => stopping ?? process.exit(0))
  // Imported after the configuration is read, so that a wrong variable is reported at once.
  const [{ appRouter: router, ...resources }, { texts }, { start }, { placesOf, startText }] =
    await Promise.all([
      import('./petstore/resources.ts'),
      import('./petstore/texts.ts'),
      import('./process/start.ts'),
      import('./process/start-text.ts'),
    ])
  await migrateDatabase(config, log.info.bind(log))
  stopping = stopRequested(signalled, config.shutdownTimeout, log)
  const document = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')
  const service = await start(config, log, { router, ...resources, document })
  const isForPeople = process.stdout.isTTY
  // A key is never logged. Not awaited: whatever reads stdout may take it late, or never.
  if (isForPeople || service.firstKey)
    print(startText(config, service, texts.firstRequest)).catch((error) =>
      log.warn({ err: error }, 'The start-up text, with any new key, is lost'),
    )
  if (config.isAwaited) (await import('./process/notify.ts')).notifyReady(log)
  // A collector of logs takes each line of a text for an entry.
  if (!isForPeople) log.info(placesOf(config, service, texts.firstRequest), `${TITLE} is running`)
  await stopping
  await service.stop()
}, reportFatal)
// A connection to a database that hangs would keep the process alive.
process.exit()
