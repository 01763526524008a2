/** What the commands share: the configuration, its database, their arguments, and how they fail. */
import type { Database } from '../../db/tables.ts'
import { describeUrl } from '../../db/url.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { complain, UsageError } from '../process/complain.ts'

/** Runs a command in its environment, and says in one line what is wrong when it fails. */
export async function command(run: (config: Config) => Promise<void>): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig()
    await run(config)
  } catch (error) {
    complain(error, config)
  }
}

/**
 * Brings the configured database to the newest schema, runs something on it, and closes it afterwards.
 * What speaks to databases is loaded here, so that a mistyped command is told without it.
 */
export async function withDatabase<Result>(
  { databaseUrl }: Pick<Config, 'databaseUrl'>,
  run: (db: Database, migrated: string[]) => Result | Promise<Result>,
): Promise<Result> {
  const [{ connect }, { migrate }] = await Promise.all([
    import('../../db/connect.ts'),
    import('../../db/migrate.ts'),
  ])
  const db = await connect(databaseUrl)
  try {
    return await run(db, await migrate(db, { onWait: console.error }))
  } finally {
    await db.destroy()
  }
}

/** How the commands call the configured database: its address, without the password. */
export const addressOf = ({ databaseUrl }: Config): string => describeUrl(databaseUrl).address

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
