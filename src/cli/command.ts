/** What the commands share: the configuration, its database, and how they fail. */
import { connect, describeUrl } from '../../db/connect.ts'
import type { Database } from '../../db/tables.ts'
import { complain, UsageError } from '../complaint.ts'
import { type Config, loadConfig } from '../config.ts'

/** Runs a command on the configured database, whose address it is told, and closes that afterwards. */
export async function command(
  run: (db: Database, address: string, config: Config) => Promise<void>,
): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig()
    const db = await connect(config.databaseUrl)
    try {
      await run(db, describeUrl(config.databaseUrl).address, config)
    } finally {
      await db.destroy()
    }
  } catch (error) {
    complain(error, config)
  }
}

/** For commands that take no arguments. Throws UsageError when there are some. */
export function refuseArguments(): void {
  const [argument] = process.argv.slice(2)
  if (argument !== undefined) throw new UsageError(`No argument is taken, but there is ${argument}`)
}

/** The FILE of commands that take one. Throws UsageError unless there is exactly one. */
export function fileArgument(): string {
  const [file, extra] = process.argv.slice(2)
  if (!file || extra !== undefined || file.startsWith('-')) {
    throw new UsageError('One FILE is taken, such as backups/monday.db')
  }
  return file
}

/** Where the embedded database is. Throws UsageError when another is configured. */
export function embeddedPath({ databaseUrl }: Config): string {
  const { engine, address } = describeUrl(databaseUrl)
  if (engine === 'sqlite') return address
  throw new UsageError(
    'Only the embedded database is copied by this: for MySQL use mysqldump --single-transaction',
  )
}
