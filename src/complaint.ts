/** What a program says when it cannot go on. */
import { describeUrl } from '../db/connect.ts'
import { DatabaseUnavailableError } from '../db/errors.ts'
import { type Config, ConfigError } from './config.ts'

/** A mistake of the person at the keyboard: the message says what is wrong and what would be right. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/**
 * Says on stderr what went wrong, and lets the process end with code 1: one line, without a stack
 * where the cause is not a bug.
 */
export function complain(error: unknown, config?: Config): void {
  console.error(config ? explained(error, config) : plain(error))
  process.exitCode = 1
}

const plain = (error: unknown) =>
  error instanceof ConfigError || error instanceof UsageError ? error.message : error

function explained(error: unknown, { databaseUrl }: Config): unknown {
  if (!(error instanceof DatabaseUnavailableError)) return plain(error)
  const { message, code } = error.cause as NodeJS.ErrnoException // what the driver threw
  const { address } = describeUrl(databaseUrl)
  return `DATABASE_URL: cannot use the database ${address}: ${message || code}`
}
