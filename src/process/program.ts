/** A program of the package: its configuration, and what it prints when it fails. */
import { DatabaseUnavailableError } from '../../db/errors.ts'
import type { Database } from '../../db/tables.ts'
import { describeUrl } from '../../db/url.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { UsageError } from '../config/environment.ts'

/** Prints a text on stdout. Throws UsageError if it cannot be written: `console.log` ignores that. */
export const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.on('error', () => {}) // without a listener, an error would end the process
    process.stdout.write(`${text}\n`, (error) =>
      error ? reject(new UsageError(`Cannot write to stdout: ${error.message}`)) : resolve(),
    )
  })

/**
 * Calls `run` with the configuration of the environment. Prints an error on stderr, and sets the exit
 * code 1. A mistake of the operator, or a database that is unavailable, is one line; any other error is
 * a bug, and has its stack.
 */
export async function program(run: (config: Config) => Promise<void>): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig()
    await run(config)
  } catch (error) {
    console.error(textOf(error, config))
    process.exitCode = 1
  }
}

/**
 * Migrates the configured database, calls `run` with it and the names of the migrations that ran, and
 * closes it. `onWait` reports that another process migrates. Returns the result of `run`. Throws
 * DatabaseUnavailableError.
 */
export async function withDatabase<Result>(
  { databaseUrl }: Pick<Config, 'databaseUrl'>,
  run: (db: Database, migrated: string[]) => Result | Promise<Result>,
  onWait: (text: string) => void = console.error,
): Promise<Result> {
  // Imported after the arguments are checked, so that a mistyped command is reported at once.
  const [{ connect }, { migrate }] = await Promise.all([
    import('../../db/connect.ts'),
    import('../../db/migrate.ts'),
  ])
  await using db = await connect(databaseUrl)
  return await run(db, await migrate(db, { onWait }))
}

function textOf(error: unknown, config: Config | undefined): unknown {
  if (error instanceof UsageError) return error.message
  if (!config || !(error instanceof DatabaseUnavailableError)) return error
  const { message, code } = error.cause as NodeJS.ErrnoException // the error of the driver
  const { location } = describeUrl(config.databaseUrl)
  return `DATABASE_URL: cannot use the database ${location}: ${message || code}`
}
