/** The commands: their signals, their database and their arguments. */
import { constants } from 'node:os'
import { describeUrl } from '../../db/url.ts'
import type { Config } from '../config/config.ts'
import { UsageError } from '../config/environment.ts'
import { program } from '../process/program.ts'

/**
 * Runs a command as `program` does, with the location of the database for people: host and name, or the
 * file. SIGTERM, SIGINT and SIGHUP end it at once, with the exit code of a shell: without a listener, process 1
 * of a container would ignore them.
 */
export function command(run: (config: Config, location: string) => Promise<void>): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  }
  return program(async (config) => {
    for (const warning of config.warnings) console.error(warning)
    await run(config, describeUrl(config.databaseUrl).location)
  })
}

/** Throws UsageError when the command has arguments. */
export function refuseArguments(): void {
  const [argument] = process.argv.slice(2)
  if (argument !== undefined)
    throw new UsageError(`This command takes no arguments: remove ${argument}`)
}

/** Returns the FILE of the command. Throws UsageError unless that is the only argument. */
export function fileArgument(): string {
  const [file, extra] = process.argv.slice(2)
  if (!file || extra !== undefined || file.startsWith('-')) {
    throw new UsageError('This command takes one FILE, such as backups/monday.db')
  }
  return file
}

/** Returns the path of the embedded database. Throws UsageError when MySQL is configured. */
export function embeddedPath({ databaseUrl }: Config): string {
  const { engine, location } = describeUrl(databaseUrl)
  if (engine === 'sqlite') return location
  throw new UsageError(
    'This command copies only the embedded database; for MySQL use mysqldump --single-transaction',
  )
}
