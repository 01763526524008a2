/** The variables of the service, from the environment of the process and from the file .env. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { nearMiss } from './near-miss.ts'

/** A mistake of the operator, in a variable or an argument. The message says what would be right. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export type Variables = Readonly<Record<string, string | undefined>>

/**
 * What Kubernetes sets for a Service, in names that end in _PORT: one called `metrics` sets METRICS_PORT.
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\/[\da-f.:[\]]+:\d+$/

/**
 * Returns the values of the variables with these names, and warnings for the operator. A variable of the
 * environment takes precedence over that of .env, even if it is empty; an empty one counts as unset.
 * Throws UsageError for a name in .env that resembles one of these names. The environment belongs to the
 * platform, too, so there such a name is a warning; but a new, empty database is worse than no start.
 */
export function valuesOf(names: readonly string[], environment: Variables, dotenv: Variables) {
  const warnings: string[] = []
  const values: Record<string, string | undefined> = {}
  for (const name of names) {
    const isLink = name.endsWith('_PORT') && SERVICE_LINK.test(environment[name] ?? '')
    if (isLink) {
      warnings.push(
        `${name} is ignored, because Kubernetes has set it for a Service: set enableServiceLinks to false in the Pod`,
      )
    }
    values[name] = ((isLink ? undefined : environment[name]) ?? dotenv[name]) || undefined
  }
  const hasDatabase = values.DATABASE_URL ?? values.DATABASE_URL_FILE
  for (const [name, value] of Object.entries({ ...environment, ...dotenv })) {
    const meant = value && !names.includes(name) && nearMiss(name, names)
    if (!meant) continue
    const warning = `${name} is not a variable of this service: did you mean ${meant}?`
    const isOfDatabase = meant.startsWith('DATABASE_URL') && !hasDatabase
    if (isOfDatabase || Object.hasOwn(dotenv, name)) throw new UsageError(warning)
    warnings.push(warning)
  }
  return { values, warnings }
}

/**
 * A line of .env: blank, a comment, or NAME=value. A value in quotes may have several lines. What follows it
 * is a comment: other text means that a quote is missing, behind which the next variable would be lost.
 */
const LINE =
  /[^\S\n]*(?:#[^\n]*|(?:export\s+)?[A-Za-z_][\w.]*[^\S\n]*=[^\S\n]*(?:(?:"[^"]*"|'[^']*'|`[^`]*`)[^\S\n]*(?:#[^\n]*)?|(?!["'`])[^\n]*))?(?:\n|$)/y

/** Returns the variables of a text in the format of .env. Throws UsageError for another line. */
export function parseDotenv(text: string): Variables {
  for (let at = 0; at < text.length; at = LINE.lastIndex) {
    LINE.lastIndex = at
    if (LINE.test(text)) continue
    const number = text.slice(0, at).split('\n').length
    throw new UsageError(`Line ${number} of .env must be NAME=value`)
  }
  return parseEnv(text)
}

/** Returns the variables of the file .env; none without the file. Throws UsageError. */
export function readDotenv(): Variables {
  try {
    // Node's own reader reports for a file that may not be read that there is none. A decoder removes the
    // byte order mark that some editors write.
    return parseDotenv(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync('.env')))
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new UsageError(`.env must be a text in UTF-8 that this user may read (${code})`)
  }
}
