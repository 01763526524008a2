/** The configuration, from the environment and the file .env. No other file reads process.env. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { platform } from 'node:process'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { mysqlQueryOf } from '../../db/url.ts'
import { parseDuration } from './duration.ts'
import { readDotenv, UsageError, type Variables, valuesOf } from './environment.ts'
import { NAME } from './product.ts'

const integer = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number)

const port = integer.refine((value) => value <= 65_535)

const list = z.string().transform((text) => text.split(',').map((item) => item.trim()))

const duration = z
  .string()
  .transform(parseDuration)
  .refine((value) => value !== undefined)

// An hour is far below the 24 days that a timer of Node can wait.
const timeout = duration.refine((value) => value > 0 && value <= 3_600_000)

// Headers carry the URL as it is, so it has only characters of RFC 3986, and no password.
const serverUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => /^https?:\/\/[\w.~%:[\]-]+(\/[\w.~%!$&'()*+,;=:@-]+)*\/v1$/i.test(url))

// IP addresses and subnets that Express parses, with this library. A subnet of 0 bits would trust every
// IP address.
const network = z
  .union([z.string().refine((text) => isIP(text) > 0), z.cidrv4(), z.cidrv6()])
  .refine((text) => ipaddr.isValid(text.replace(/\/.*/, '')) && !text.endsWith('/0'))
  .or(z.enum(['loopback', 'linklocal', 'uniquelocal']))

// The origin of a web view or an extension is no origin by the URL standard. A URL may have a host such as
// *.example, which is no pattern: it would match no page.
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\]+$/
const origin = z
  .string()
  .refine(
    (text) => !text.includes('*') && (URL.parse(text)?.origin === text || OTHER_ORIGIN.test(text)),
  )
  .or(z.literal('*'))

const SERVER_URL = 'an http or https URL that ends in /v1'
const HOST = 'a host or an IP address to listen on'

/** The variables by their names in the configuration: schemas, and the ends of the sentence `NAME must be …`. */
const variables = {
  port: [port.default(3000), 'an integer from 0 to 65535'],
  /** Undefined for all addresses of this machine. */
  listenHost: [z.string().optional(), HOST],
  databaseUrl: [
    z.string().refine(isDatabaseUrl).default(`sqlite:data/${NAME}.db?create`),
    'mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, where the path is that of a file, or empty',
  ],
  databaseUrlFile: [z.string().optional(), 'the path of a file'],
  databasePasswordFile: [z.string().optional(), 'the path of a file'],
  databasePassword: [z.string().optional(), 'a password'],
  baseUrl: [serverUrl.optional(), SERVER_URL],
  /** Public URL of REST on the staging installation; undefined where there is none. */
  stagingUrl: [serverUrl.optional(), SERVER_URL],
  /** Origins whose pages may call the service; `*` allows all. */
  corsOrigins: [
    list.pipe(z.array(origin)).default([]),
    'origins such as https://shop.example, separated by commas, or *',
  ],
  /** Calls a minute for each API key or IP address; undefined for no limit. */
  rateLimit: [
    integer.refine((value) => value > 0).optional(),
    'an integer of calls a minute, from 1, or empty for no limit',
  ],
  trustProxy: [
    z.union([integer, list.pipe(z.array(network))]).default(0),
    'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
  ],
  /** Milliseconds that a call may wait for the database. */
  databaseTimeout: [
    timeout.refine((value) => value <= 30_000).default(5_000), // the server closes slower requests
    'a duration from 1ms to 30s, such as 5s',
  ],
  /** Maximum number of connections to MySQL. */
  databasePoolSize: [
    integer.refine((value) => value >= 1 && value <= 1_000).default(10),
    'an integer from 1 to 1000',
  ],
  /** Milliseconds that an idle connection of a client stays open. */
  keepAliveTimeout: [timeout.default(65_000), 'a duration from 1ms to 1h, such as 65s'],
  /** Milliseconds that a graceful stop may take. */
  shutdownTimeout: [timeout.default(10_000), 'a duration from 1ms to 1h, such as 10s'],
  /** Milliseconds between the report of unreadiness and the end of new connections. */
  shutdownDelay: [duration.default(0), 'a duration such as 5s, shorter than SHUTDOWN_TIMEOUT'],
  /** Milliseconds that an Idempotency-Key is kept. */
  idempotencyLifetime: [
    duration.refine((value) => value >= 60_000).default(86_400_000),
    'a duration from 1m, such as 24h',
  ],
  /** The lowest level that is logged. */
  logLevel: [
    z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    'debug, info, warn or error',
  ],
  metricsPort: [port.optional(), 'an integer from 0 to 65535, or empty'],
  metricsHost: [z.string().default('127.0.0.1'), HOST],
  /** Whether other processes of the service may listen on the same port. */
  reusePort: [z.stringbool({ truthy: ['true'], falsy: ['false'] }).default(false), 'true or false'],
} as const

type Values = { [Field in keyof typeof variables]: z.output<(typeof variables)[Field][0]> }

/** Returns the variable of a field: DATABASE_URL of `databaseUrl`. */
const nameOf = (field: string) => field.replaceAll(/[A-Z]/g, '_$&').toUpperCase()

/** The configuration, with defaults applied. */
export type Config = ReturnType<typeof readConfig>

/** Returns the configuration of this process, from its environment and the file .env. Throws UsageError. */
export const loadConfig = (): Config => readConfig(process.env, readDotenv())

/**
 * Returns the configuration of an environment and of the variables in .env. Throws UsageError, which does
 * not show a value: that of DATABASE_URL contains a password.
 */
export function readConfig(environment: Variables, dotenv: Variables = {}) {
  const { values, warnings } = valuesOf(Object.keys(variables).map(nameOf), environment, dotenv)
  for (const name of ['DATABASE_URL', 'DATABASE_PASSWORD']) values[name] = secretOf(name, values)
  const parsed: Record<string, unknown> = {}
  for (const [field, [schema, rule]] of Object.entries(variables)) {
    const { success, data } = schema.safeParse(values[nameOf(field)])
    if (!success) throw new UsageError(`${nameOf(field)} must be ${rule}`)
    parsed[field] = data
  }
  const all = parsed as Values // each is the output of its schema
  const { databaseUrlFile: _url, databasePasswordFile: _password, ...others } = all
  const { databasePassword, metricsHost, metricsPort, ...read } = others
  if (read.shutdownDelay >= read.shutdownTimeout) {
    throw new UsageError('SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT')
  }
  const databaseUrl = withPassword(read.databaseUrl, databasePassword)
  if (read.reusePort && (platform !== 'linux' || databaseUrl.startsWith('sqlite:'))) {
    throw new UsageError('REUSE_PORT=true needs Linux, and a DATABASE_URL of MySQL')
  }
  return {
    ...read,
    databaseUrl,
    baseUrl: read.baseUrl ?? `http://localhost:${read.port}/v1`,
    /** Where the metrics are served; undefined where they are off. */
    metrics: metricsPort === undefined ? undefined : { host: metricsHost, port: metricsPort },
    /** Whether a variable of OpenTelemetry says where to send traces. */
    exportsTraces: Object.keys({ ...environment, ...dotenv }).some((name) =>
      name.startsWith('OTEL_EXPORTER_'),
    ),
    /** Sentences for the log. */
    warnings,
  }
}

/** Returns a variable, or the text of the file of NAME_FILE, as Docker and Kubernetes mount secrets. */
function secretOf(name: string, { [name]: value, [`${name}_FILE`]: file }: Variables) {
  if (!file) return value
  if (value) throw new UsageError(`${name} and ${name}_FILE are both set: unset one`)
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (text !== '') return text
  } catch (error) {
    throw new UsageError(`${name}_FILE: ${(error as Error).message}`)
  }
  throw new UsageError(`${name}_FILE: ${file} is empty`)
}

/** Returns a DATABASE_URL with a password that is not percent-encoded, as other variables have it. */
function withPassword(databaseUrl: string, password: string | undefined): string {
  if (password === undefined) return databaseUrl
  const url = new URL(databaseUrl)
  if (url.protocol !== 'mysql:' || url.password !== '') {
    throw new UsageError('DATABASE_PASSWORD needs a DATABASE_URL of MySQL without a password')
  }
  url.password = encodeURIComponent(password)
  return url.href
}

function isDatabaseUrl(text: string): boolean {
  // SQLite itself would take the last two for a database in memory, and for a URI with options.
  if (text.startsWith('sqlite:')) return !/^sqlite:(\?create$|$|:memory:|file:)/.test(text)
  try {
    const url = new URL(text)
    // mysql2 decodes these, so a % in a password must be written as %25.
    decodeURIComponent(url.username + url.password + url.hostname + url.pathname)
    mysqlQueryOf(url)
    const { protocol, hostname, pathname, hash } = url
    return protocol === 'mysql:' && hostname !== '' && pathname.length > 1 && hash === ''
  } catch {
    return false
  }
}
