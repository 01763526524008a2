/** The process, from its start to its stop. */
import type { Database } from '../db/tables.ts'
import type { Config } from './config/config.ts'
import { createLog } from './observe/log.ts'
import { isTraced } from './observe/span.ts'
import { FIRST_REQUEST } from './petstore/product.ts'
import type { Composition } from './process/composition.ts'
import { print, program, withDatabase } from './process/program.ts'
import { stopRequested, stopSignal } from './process/shutdown.ts'

const NOT_TRACED =
  'No traces are sent, although OTEL_EXPORTER_… is set: load OpenTelemetry from deploy/tracing.mjs, as docs/operating.md says'

const composition: Composition = {
  loadResources: async () => (await import('./petstore/resources.ts')).resources,
  firstRequest: FIRST_REQUEST,
}
const log = await createLog()
await program(run)
// A connection to a database that hangs would keep the process alive.
process.exit()

async function run(config: Config): Promise<void> {
  log.level = config.logLevel
  for (const warning of config.warnings) log.warn(warning)
  const signalled = stopSignal()
  let stopping: Promise<void> | undefined
  // During the migrations a signal ends the process at once. Without this, process 1 of a container
  // would ignore it.
  void signalled.then(() => stopping ?? process.exit(0))
  // Imported after the configuration is read, so that a wrong variable is reported at once.
  const { start } = await import('./process/start.ts')
  const begin = async (db: Database) => {
    stopping = stopRequested(signalled, config.shutdownTimeout, log)
    if (config.exportsTraces && !isTraced()) log.warn(NOT_TRACED)
    return await start(db, config, log, composition)
  }
  const { text, stop } = await withDatabase(config, begin, (text) => log.info(text))
  await print(text).catch((error) =>
    log.warn({ err: error }, 'The start-up text, with any new key, is lost'),
  )
  await stopping
  await stop()
}
