/** The configuration, from the environment. No other file reads process.env. */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { platform } from 'node:process'
import { parseEnv } from 'node:util'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { mysqlQueryOf } from '../../db/url.ts'
import { parseDuration } from './duration.ts'
import { nearMiss } from './near-miss.ts'
import { NAME } from './product.ts'

/** A variable is wrong: the message names it, and says what it must be. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

const integer = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number)

const portNumber = integer.refine((value) => value <= 65_535)

const list = z.string().transform((text) => text.split(',').map((item) => item.trim()))

const duration = z
  .string()
  .transform(parseDuration)
  .refine((value) => value !== undefined)

// An hour is far below the 24 days that a timer of Node can wait.
const timeout = duration.refine((value) => value > 0 && value <= 3_600_000)

const SERVER_URL = 'an http or https URL that ends in /v1'

// Headers carry it as it is, so it has only characters of RFC 3986, and no password.
const serverUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => /^https?:\/\/[\w.~%:[\]-]+(\/[\w.~%!$&'()*+,;=:@-]+)*\/v1$/i.test(url))
  .optional()

// IP addresses and subnets that Express parses, with this library. A subnet of 0 bits would trust every
// IP address.
const ipAddresses = z
  .union([z.string().refine((text) => isIP(text) > 0), z.cidrv4(), z.cidrv6()])
  .refine((text) => ipaddr.isValid(text.replace(/\/.*/, '')) && !text.endsWith('/0'))

const network = z.enum(['loopback', 'linklocal', 'uniquelocal']).or(ipAddresses)

/** The configuration, with defaults applied. */
export type Config = ReturnType<typeof readConfig>

/**
 * Returns the value of a variable. `rule` completes the message of ConfigError, `NAME must be …`, which
 * does not show the value: that of DATABASE_URL contains a password.
 */
type Read = <Value>(name: string, schema: z.ZodType<Value>, rule: string) => Value

/**
 * Returns the configuration of an environment. An empty variable counts as unset. Throws ConfigError for
 * a wrong value, and for an unknown variable whose name is nearly that of a known one.
 */
export function readConfig(environment: Record<string, string | undefined>) {
  const names = new Set<string>()
  const read: Read = (name, schema, rule) => {
    names.add(name)
    const result = schema.safeParse(environment[name] || undefined)
    if (result.success) return result.data
    throw new ConfigError(`${name} must be ${rule}`)
  }
  const port = read('PORT', portNumber.default(3000), 'an integer from 0 to 65535')
  const config = {
    port,
    databaseUrl: read(
      'DATABASE_URL',
      z.string().refine(isDatabaseUrl).default(`sqlite:data/${NAME}.db?create`),
      'mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, or empty',
    ),
    baseUrl: read('BASE_URL', serverUrl, SERVER_URL) ?? `http://localhost:${port}/v1`,
    /** Public URL of REST on the staging installation; undefined where there is none. */
    stagingUrl: read('STAGING_URL', serverUrl, SERVER_URL),
    /** Origins whose pages may call the service; `*` allows all. */
    corsOrigins: read(
      'CORS_ORIGINS',
      list.pipe(z.array(z.string().refine(isOrigin))).default([]),
      'origins such as https://shop.example, separated by commas, or *',
    ),
    /** Calls a minute for each API key or IP address; undefined for no limit. */
    rateLimit: read(
      'RATE_LIMIT',
      integer.refine((value) => value > 0).optional(),
      'an integer of calls a minute, from 1, or empty for no limit',
    ),
    /** The number of trusted proxies, or their IP addresses and subnets. */
    trustProxy: read(
      'TRUST_PROXY',
      z.union([integer, list.pipe(z.array(network))]).default(0),
      'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
    ),
    /** Milliseconds that a call may wait for the database: the server closes slower requests. */
    databaseTimeout: read(
      'DATABASE_TIMEOUT',
      timeout.refine((value) => value <= 30_000).default(5_000),
      'a duration from 1ms to 30s, such as 5s',
    ),
    /** Maximum number of connections to MySQL. */
    databasePoolSize: read(
      'DATABASE_POOL_SIZE',
      integer.refine((value) => value >= 1 && value <= 1_000).default(10),
      'an integer from 1 to 1000',
    ),
    /** Milliseconds that an idle connection of a client stays open. */
    keepAliveTimeout: read(
      'KEEP_ALIVE_TIMEOUT',
      timeout.default(65_000),
      'a duration from 1ms to 1h, such as 65s',
    ),
    /** Milliseconds that a graceful stop may take. */
    shutdownTimeout: read(
      'SHUTDOWN_TIMEOUT',
      timeout.default(10_000),
      'a duration from 1ms to 1h, such as 10s',
    ),
    /** Milliseconds between the report of unreadiness and the end of new connections. */
    shutdownDelay: read(
      'SHUTDOWN_DELAY',
      duration.default(0),
      'a duration such as 5s, shorter than SHUTDOWN_TIMEOUT',
    ),
    /** Milliseconds that an Idempotency-Key is kept. */
    idempotencyLifetime: read(
      'IDEMPOTENCY_LIFETIME',
      duration.refine((value) => value >= 60_000).default(86_400_000),
      'a duration from 1m, such as 24h',
    ),
    /** Where the metrics are served; undefined where they are off. */
    metrics: readMetrics(read),
    /** Whether other processes of the service may listen on the same port. */
    reusePort: read(
      'REUSE_PORT',
      z.stringbool({ truthy: ['true'], falsy: ['false'] }).default(false),
      'true or false',
    ),
    /** Whether a variable of OpenTelemetry says where to send traces. */
    exportsTraces: Object.entries(environment).some(
      ([name, value]) => value && name.startsWith('OTEL_EXPORTER_'),
    ),
  }
  rejectMisspelled(environment, names)
  if (config.shutdownDelay >= config.shutdownTimeout) {
    throw new ConfigError('SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT')
  }
  if (config.reusePort && (platform !== 'linux' || config.databaseUrl.startsWith('sqlite:'))) {
    throw new ConfigError('REUSE_PORT=true needs Linux, and a DATABASE_URL of MySQL')
  }
  return config
}

function readMetrics(read: Read) {
  const port = read('METRICS_PORT', portNumber.optional(), 'an integer from 0 to 65535, or empty')
  const hosts = z.string().default('127.0.0.1')
  const host = read('METRICS_HOST', hosts, 'a host or an IP address to listen on')
  return port === undefined ? undefined : { host, port }
}

function rejectMisspelled(
  environment: Record<string, string | undefined>,
  known: Set<string>,
): void {
  for (const [name, value] of Object.entries(environment)) {
    const meant = value && !known.has(name) && nearMiss(name, [...known])
    if (meant)
      throw new ConfigError(`${name} is not a variable of this service: did you mean ${meant}?`)
  }
}

/**
 * Returns the configuration of this process, from the environment and `.env`. Throws ConfigError.
 */
export function loadConfig(): Config {
  // What the environment has, even if it is empty, takes precedence.
  for (const [name, value] of Object.entries(parseEnv(readDotenv()))) process.env[name] ??= value
  return readConfig(process.env)
}

// Not process.loadEnvFile: for a file that may not be read, it reports that there is none.
function readDotenv(): string {
  const bytes = readDotenvBytes()
  // ASCII in UTF-16 is also UTF-8, with a NUL beside each character.
  if (!isUtf8(bytes) || bytes.includes(0)) throw new ConfigError('.env must be a text in UTF-8')
  return bytes.toString().replace(/^\ufeff/, '') // some editors write a byte order mark
}

function readDotenvBytes(): Buffer {
  try {
    return readFileSync('.env')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return Buffer.of()
    throw new ConfigError(`.env cannot be read (${code})`)
  }
}

function isDatabaseUrl(text: string): boolean {
  if (text.startsWith('sqlite:')) return !/^sqlite:(\?create)?$/.test(text)
  const url = URL.parse(text)
  if (url?.protocol !== 'mysql:' || url.hostname === '' || url.pathname.length < 2) return false
  if (url.hash !== '') return false
  try {
    // mysql2 decodes these, so a % in a password must be written as %25.
    decodeURIComponent(url.username + url.password + url.hostname + url.pathname)
    mysqlQueryOf(url)
    return true
  } catch {
    return false
  }
}

/** The origin of a web view or an extension, whose URL has no origin by the URL standard. */
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\]+$/

function isOrigin(text: string): boolean {
  if (text === '*') return true
  // A URL may have a host such as *.example, which is no pattern: it would match no page.
  if (text.includes('*')) return false
  return URL.parse(text)?.origin === text || OTHER_ORIGIN.test(text)
}
