/** The programs of the package: their configuration, signals, arguments and database, and how they fail. */
import { existsSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import path from 'node:path'
import { DatabaseUnavailableError, MissingDatabaseError } from '../../db/errors.ts'
import type { RootDatabase } from '../../db/index.ts'
import { describeUrl } from '../../db/url.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { MissingFileError, UsageError } from '../config/environment.ts'
import { unblockTerminals } from '../observe/terminal.ts'

/**
 * Calls `run` with the configuration of the environment, and the location of the database for people: host
 * and name, or the file. Reports an error, by default on stderr, and sets the exit code: 78 for a wrong configuration, which
 * does not right itself (EX_CONFIG of sysexits.h), unless a file of it is missing; otherwise 1. A mistake of the operator, or a database that is
 * unavailable, is one line; any other error is a bug, and has its stack.
 */
export async function program(
  run: (config: Config, location: string) => Promise<void>,
  report: (error: unknown) => void = console.error,
): Promise<void> {
  let location: string | undefined
  try {
    checkFolder()
    const config = loadConfig()
    location = describeUrl(config.databaseUrl).location
    await run(config, location)
  } catch (error) {
    process.exitCode = location === undefined && !(error instanceof MissingFileError) ? 78 : 1
    if (error instanceof UsageError) return report(error.message)
    if (!(error instanceof DatabaseUnavailableError)) return report(error)
    // The error of the driver: mysql2 sets `fatal` if it ended the connection, or the server's number.
    const { message, code, fatal, errno } = error.cause as NodeJS.ErrnoException & {
      fatal?: boolean
    }
    const place = error instanceof MissingDatabaseError ? `. ${whereLooked()}` : ''
    const owner = ownerOf(error.cause as NodeJS.ErrnoException)
    const isLost = !error.hadNoEffect && (fatal || Number(errno) > 0)
    const doubt = isLost ? '; a change may have taken effect' : ''
    report(
      `DATABASE_URL: cannot use the database ${location}: ${message || code}${place}${owner}${doubt}`,
    )
  }
}

/** Throws MissingFileError where the working folder has been removed: a library would end the process with a stack. */
function checkFolder(): void {
  try {
    process.cwd()
  } catch {
    throw new MissingFileError('The working folder has been removed: change to one that exists')
  }
}

/** Says in which folder a command looked for the database and its variables: a caller may be in another one. */
const whereLooked = (): string =>
  `The folder is ${process.cwd()}, ${existsSync('.env') ? 'whose .env was read' : 'which has no .env'}`

/** Says whose a file is that this process may not use, as on a volume of another user, and what helps. */
function ownerOf({ code, syscall, path: file }: NodeJS.ErrnoException): string {
  const user = process.getuid?.()
  if (syscall === 'mkdir' && code !== 'EEXIST') return `: run install -d -o ${user} ${file} as root`
  if (code !== 'EACCES' || !file) return ''
  let place = file
  while (!existsSync(place)) place = path.dirname(place)
  const { uid, gid } = statSync(place)
  return `. ${place} belongs to user ${uid} and group ${gid}, and this process is of user ${user}: run chown -R ${user} ${path.dirname(file)} as root`
}

/**
 * Runs a command as `program` does. SIGTERM, SIGINT and SIGHUP end it at once, with the exit code of a shell:
 * without a listener, process 1 of a container would ignore them.
 */
export function command(run: (config: Config, location: string) => Promise<void>): Promise<void> {
  unblockTerminals()
  onWarning(({ name, message }) => console.error(`${name}: ${message}`))
  return program(async (config, location) => {
    // Once the configuration is read: no listener hears a signal while this process waits for a FIFO.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.once(signal, () => process.exit(128 + constants.signals[signal]))
    }
    for (const warning of config.warnings) console.error(warning)
    await run(config, location)
  })
}

/** Has `report` hear of warnings of Node, except that a feature such as node:sqlite of Node 24.4 is experimental. */
export function onWarning(report: (warning: Error) => void): void {
  process.removeAllListeners('warning').on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') report(warning)
  })
}

/** Throws UsageError when the command has arguments. */
export function refuseArguments(): void {
  const [argument] = process.argv.slice(2)
  if (argument === undefined) return
  throw new UsageError(`This command takes no arguments: remove ${argument}`)
}

/** Returns the path of the FILE of the command. Throws UsageError unless that is the only argument. */
export function fileArgument({ callerFolder }: Config): string {
  const [file, extra] = process.argv.slice(2)
  const isOne = file && extra === undefined && !file.startsWith('-')
  if (isOne) return callerFolder ? path.resolve(callerFolder, file) : file
  throw new UsageError('This command takes one FILE, such as backups/monday.db')
}

/** Returns the path of the embedded database. Throws UsageError when MySQL is configured. */
export function embeddedPath({ databaseUrl }: Config): string {
  const { engine, location } = describeUrl(databaseUrl)
  if (engine === 'sqlite') return location
  throw new UsageError(
    'This command copies only the embedded database; for MySQL use mysqldump --single-transaction',
  )
}

/** The reader of stdout has gone, such as `head`, which takes a part alone. */
class NoReaderError extends UsageError {}

/** Prints a text on stdout. Throws UsageError if it cannot be written: `console.log` ignores that. */
export const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.on('error', () => {}) // without a listener, an error would end the process
    process.stdout.write(`${text}\n`, (error: NodeJS.ErrnoException | null | undefined) => {
      const Failure = error?.code === 'EPIPE' ? NoReaderError : UsageError
      if (error) reject(new Failure(`Cannot write to stdout: ${error.message}`))
      else resolve()
    })
  })

/** Prints a text on stdout as `print` does, of which a reader may take a part alone. */
export const printList = (text: string): Promise<void> =>
  print(text).catch((error) => {
    if (!(error instanceof NoReaderError)) throw error
  })

/**
 * Migrates the configured database, calls `run` with it and the names of the migrations that ran, and closes
 * it. `report` is `migrate`'s. Returns the result of `run`. Throws DatabaseUnavailableError, and
 * MissingDatabaseError for a database without tables of the service, unless it `mayCreate` them.
 */
export async function withMigratedDatabase<Result>(
  { databaseUrl }: Pick<Config, 'databaseUrl'>,
  run: (db: RootDatabase, migrated: string[]) => Result | Promise<Result>,
  report: (text: string) => void = console.error,
  mayCreate = true,
): Promise<Result> {
  // Imported after the arguments are checked, so that a mistyped command is reported at once.
  const { connect, migrate, MIGRATIONS } = await import('../../db/index.ts')
  const { engine, location } = describeUrl(databaseUrl)
  await using db = await connect(
    engine === 'sqlite' && !mayCreate ? `sqlite:${location}` : databaseUrl,
  )
  return await run(db, await migrate(db, report, MIGRATIONS, mayCreate))
}

/** Migrates the configured database, and returns the names of the migrations that ran. Throws as `withMigratedDatabase`. */
export const migrateDatabase = (
  config: Pick<Config, 'databaseUrl'>,
  report?: (text: string) => void,
): Promise<string[]> => withMigratedDatabase(config, (_db, migrated) => migrated, report)
