/** What a program says when it cannot go on. */
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { describeUrl } from '../../db/url.ts'
import { type Config, ConfigError } from '../config/config.ts'

/** A mistake of the person at the keyboard: the message says what is wrong and what would be right. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/**
 * Says on stderr what went wrong, and lets the process end with code 1: one line, without a stack
 * where the cause is not a bug.
 */
export function complain(error: unknown, config?: Config): void {
  console.error(wordsOf(error, config))
  process.exitCode = 1
}

function wordsOf(error: unknown, config: Config | undefined): unknown {
  if (error instanceof ConfigError || error instanceof UsageError) return error.message
  if (!config || !(error instanceof DatabaseUnavailableError)) return error
  const { message, code } = error.cause as NodeJS.ErrnoException // what the driver threw
  const { address } = describeUrl(config.databaseUrl)
  return `DATABASE_URL: cannot use the database ${address}: ${message || code}`
}
