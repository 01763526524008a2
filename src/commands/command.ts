/** What the programs of this repository share: configuration, database, and how they fail. */
import { connect, describeUrl } from '../../db/connect.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import type { Database } from '../../db/tables.ts'
import { type Config, ConfigError, loadConfig } from '../config.ts'

/** A mistake of the person at the keyboard: the message says what is wrong and what would be right. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/**
 * Runs a program on the configured database and closes it afterwards. What goes wrong is one line
 * on stderr, without a stack where the cause is not a bug, and exit code 1.
 */
export async function command(run: (db: Database, config: Config) => Promise<void>): Promise<void> {
  try {
    const config = loadConfig()
    const db = connect(config.databaseUrl)
    try {
      await run(db, config)
    } catch (error) {
      throw reachable(error, config)
    } finally {
      await db.destroy()
    }
  } catch (error) {
    const known = error instanceof ConfigError || error instanceof UsageError
    console.error(known ? error.message : error)
    process.exitCode = 1
  }
}

/** For programs that take no arguments. Throws UsageError when there are some. */
export function refuseArguments(): void {
  const [argument] = process.argv.slice(2)
  if (argument !== undefined) throw new UsageError(`No argument is taken, but there is ${argument}`)
}

function reachable(error: unknown, { databaseUrl }: Config): unknown {
  if (!(error instanceof DatabaseUnavailableError)) return error
  const { message, code } = error.cause as NodeJS.ErrnoException
  const { address } = describeUrl(databaseUrl)
  return new ConfigError(`DATABASE_URL: cannot use the database ${address}: ${message || code}`)
}
