/** The variables of the service, from the environment of the process and from the file .env. No other file reads process.env. */
import { fstatSync, lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** A mistake of the operator, in a variable or an argument. The message says what would be right. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A file of the configuration is missing. What mounts it may do so later, so a later start may succeed. */
export class MissingFileError extends UsageError {}

export type Variables = Readonly<Record<string, string | undefined>>

/**
 * Returns the values of the variables with these names, without line ends, and warnings for the operator. A variable of the
 * environment takes precedence over that of .env, even if it is empty; an empty one counts as unset.
 * DATABASE_URL has the password of DATABASE_PASSWORD; either may be in a file. Throws UsageError for a name
 * in .env that resembles one of these names. The environment belongs to the platform, too, so there such a
 * name is a warning; but a new, empty database is worse than no start.
 */
export function valuesOf(known: readonly string[], environment: Variables, dotenv: Variables) {
  const names = [...known, 'DATABASE_URL_FILE', 'DATABASE_PASSWORD', 'DATABASE_PASSWORD_FILE']
  const warnings: string[] = []
  const values: Record<string, string | undefined> = {}
  for (const name of names) {
    const own = environment[name]
    // Secrets that `echo` has made end in a line end.
    values[name] = (own ?? dotenv[name])?.replace(/[\r\n]+$/, '') || undefined
    if (/^(["']).*\1\s*$/s.test(own ?? '')) warnings.push(quotesOf(name))
  }
  const hasDatabase = values.DATABASE_URL ?? values.DATABASE_URL_FILE
  for (const [name, value] of Object.entries({ ...environment, ...dotenv })) {
    const meant = value && !names.includes(name) && resembling(name, names)
    if (!meant) continue
    const warning = `${name} is not a variable of this service: did you mean ${meant}?`
    const isOfDatabase = /^DATABASE_(URL|PASSWORD)/.test(meant) && !hasDatabase
    if (isOfDatabase || Object.hasOwn(dotenv, name)) throw new UsageError(warning)
    warnings.push(warning)
  }
  values.DATABASE_URL = databaseUrlOf(values)
  const broken = names.find((name) => values[name]?.includes('\0'))
  if (broken) throw new UsageError(`${broken} must not contain the character NUL`)
  if (environment.KUBERNETES_SERVICE_HOST && !values.DATABASE_URL)
    warnings.push(
      'The embedded database is of this Pod alone, and ends with it unless data is a volume: set DATABASE_URL',
    )
  return { values, warnings }
}

/** What is wrong with a variable of the environment whose value is in quotes, as the operator should know it. */
export const quotesOf = (name: string): string =>
  `${name} has quotes around its value, which docker run --env-file keeps: remove them, unless they belong to it`

/** Returns DATABASE_URL, with DATABASE_PASSWORD, which is not percent-encoded, as its password. */
function databaseUrlOf(values: Variables): string | undefined {
  const databaseUrl = secretOf('DATABASE_URL', values)
  const password = secretOf('DATABASE_PASSWORD', values)
  if (password === undefined) return databaseUrl
  const url = URL.parse(databaseUrl ?? '')
  if (url?.protocol !== 'mysql:' || url.password !== '') {
    throw new UsageError('DATABASE_PASSWORD needs a DATABASE_URL of MySQL without a password')
  }
  url.password = encodeURIComponent(password)
  return url.href
}

/** Returns a variable, or the text of the file of NAME_FILE, as Docker and Kubernetes mount secrets. */
function secretOf(name: string, { [name]: value, [`${name}_FILE`]: file }: Variables) {
  if (!file) return value
  if (value) throw new UsageError(`${name} and ${name}_FILE are both set: unset one`)
  return readSecret(`${name}_FILE`, file)
}

/**
 * Returns the text of a file without line breaks at its end. Throws UsageError, which begins with `name`, and is a
 * MissingFileError where there is no file.
 */
export function readSecret(name: string, file: string): string {
  try {
    const text = readFileSync(file, 'utf8').replace(/^\uFEFF|[\r\n]+$/g, '')
    if (text.trim() === '') throw new TypeError(`${file} is empty`)
    return text
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const Mistake = code === 'ENOENT' ? MissingFileError : UsageError
    throw new Mistake(`${name}: ${message}`)
  }
}

/** Up to this length a name may have one mistake, above it two: short names resemble too many others. */
const SHORT = 5

/** Returns the name that has the letters of `written`, of which either may lack a few; undefined where there is none. */
const resembling = (written: string, names: readonly string[]): string | undefined =>
  names.find((name) => mistakesOf(written.toUpperCase(), name) <= (name.length > SHORT ? 2 : 1))

/** Returns how many letters one text has and the other lacks, wherever they are. */
function mistakesOf(written: string, name: string): number {
  let mistakes = 0
  let rest = name
  for (const letter of written) {
    if (rest.includes(letter)) rest = rest.replace(letter, '')
    else mistakes++
  }
  return mistakes + rest.length
}

/** Node would take another space for a part of the name, such as that of a text from a page. */
const SPACE = '[ \\t]*'
/** Some editors end a line at other characters, too; Node would not see the variable of the next line. */
const END = '(?:\\r?\\n|$)'
const REST = '[^\\n\\r\\v\\f\\x85\\u2028\\u2029]*'
const NO_SIGN = REST.replace(']', '#]')
const COMMENT = `#${REST}`
/** It may have several lines, and a comment behind it. */
const QUOTED = `(?:"[^"]*"|'[^']*'|\`[^\`]*\`)${SPACE}(?:${COMMENT})?`
/** Node ends it at any number sign. One inside it, as in a password, would cut it without a word. */
const PLAIN = `[^\\s\\x85"'\`#]${NO_SIGN}(?:(?<=[ \\t])${COMMENT})?`
const VARIABLE = `[A-Za-z_][\\w.]*${SPACE}=(?:${SPACE}(?:${QUOTED}|${PLAIN})|[ \\t]+${COMMENT})?`

/**
 * The lines of .env: blank, a comment, or NAME=value. After a missing quote, or a space for a value, Node
 * would take the next variable for the value.
 */
const LINES = new RegExp(`${SPACE}(?:${COMMENT}|(?:export[ \\t]+)?(${VARIABLE}))?${END}`, 'gy')

/** What looks like a space, or like the end of a line, and is none in .env. */
const FOREIGN = /[^\S \t\r\n]|\x85|\r(?!\n)/

/** Returns the variables of the environment and those of the file .env. Throws UsageError. */
export const loadVariables = (): [environment: Variables, dotenv: Variables] => [
  process.env,
  parseDotenv(readDotenv()),
]

/** Whether stderr leads to the journal of systemd. Children and files inherit the variable, so it says which one. */
export function isJournal(fd: number): boolean {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return process.env.JOURNAL_STREAM === `${dev}:${ino}`
}

/** Returns the variables of a text in the format of .env. Throws UsageError for another line. */
export function parseDotenv(text: string): Variables {
  // Node takes an indented comment behind another one for a variable, and a tab behind `export` for a part of the name.
  const variables: string[] = []
  const rest = text.replace(LINES, (_, variable?: string) => {
    if (variable) variables.push(variable)
    return ''
  })
  if (rest === '') return parseEnv(variables.join('\n'))
  const number = text.slice(0, -rest.length).split('\n').length
  const line = rest.split(/(?<=\n)/)[0] ?? ''
  const [foreign] = FOREIGN.exec(line) ?? []
  const ofSign = /=.*#/.test(line) ? ', with quotes around a value that has a #' : ''
  const hint = foreign ? `, without the character U+${codeOf(foreign)}` : ofSign
  throw new UsageError(`Line ${number} of .env must be NAME=value${hint}`)
}

const codeOf = (character: string): string =>
  character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')

/**
 * Returns the text of the file .env, which is empty without the file. A FIFO is waited for. Throws UsageError, which is
 * a MissingFileError if .env is a link to a missing file: an empty database would take the place of the configured one.
 */
export function readDotenv(): string {
  try {
    // Node's own reader reports for a file that may not be read that there is none. A decoder removes the
    // byte order mark that some editors write.
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync('.env'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') {
      if (!lstatSync('.env', { throwIfNoEntry: false })) return ''
      throw new MissingFileError(`.env is a link to ${readlinkSync('.env')}, which is missing`)
    }
    throw new UsageError(`.env must be a text in UTF-8 that this user may read (${code})`)
  }
}
