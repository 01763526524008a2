/** The configuration, from the environment. No other file reads process.env. */
import { isIP } from 'node:net'
import { z } from 'zod'
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

const port = integer.refine((value) => value <= 65_535)

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

/** The variable that turns tracing on. */
const TRACES_TO = 'OTEL_EXPORTER_OTLP_ENDPOINT'

const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const

// A description completes the message `NAME must be …`. No message shows a value: that of
// DATABASE_URL contains a password.
const variables = {
  PORT: port.default(3000).describe('an integer from 0 to 65535'),
  DATABASE_URL: z
    .string()
    .refine(isDatabaseUrl)
    .default(`sqlite:data/${NAME}.db?create`)
    .describe(
      'mysql://user:password@host:3306/database (special characters percent-encoded), or sqlite:path, or sqlite:path?create, or empty',
    ),
  BASE_URL: serverUrl.optional().describe(SERVER_URL),
  STAGING_URL: serverUrl.optional().describe(SERVER_URL),
  CORS_ORIGINS: list
    .pipe(z.array(z.string().refine(isOrigin)))
    .default([])
    .describe('origins such as https://shop.example, separated by commas, or *'),
  RATE_LIMIT: integer
    .refine((value) => value > 0)
    .optional()
    .describe('an integer of calls a minute, from 1, or empty for no limit'),
  TRUST_PROXY: z
    .union([integer, list.pipe(z.array(z.string().refine(isNetwork)))])
    .default(0)
    .describe(
      'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
    ),
  // The server closes the connection of a request that takes longer.
  DATABASE_TIMEOUT: timeout
    .refine((value) => value <= 30_000)
    .default(5_000)
    .describe('a duration from 1ms to 30s, such as 5s'),
  SHUTDOWN_TIMEOUT: timeout.default(10_000).describe('a duration from 1ms to 1h, such as 10s'),
  SHUTDOWN_DELAY: duration
    .default(0)
    .describe('a duration such as 5s, shorter than SHUTDOWN_TIMEOUT'),
  IDEMPOTENCY_LIFETIME: duration
    .refine((value) => value >= 60_000)
    .default(86_400_000)
    .describe('a duration from 1m, such as 24h'),
  METRICS_PORT: port.optional().describe('an integer from 0 to 65535, or empty'),
  METRICS_HOST: z.string().default('127.0.0.1').describe('a host or an IP address to listen on'),
  WORKERS: integer
    .refine((value) => value >= 1 && value <= 256)
    .default(1)
    .describe('an integer from 1 to 256'),
  // https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
  [TRACES_TO]: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('an http or https URL, such as http://localhost:4318'),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .literal('http/protobuf')
    .optional()
    .describe('http/protobuf, or empty'),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).default('otlp').describe('otlp or none'),
  OTEL_SDK_DISABLED: z
    .string()
    .transform((text) => text.toLowerCase() === 'true')
    .default(false)
    .describe('true or false'),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS)
    .default('parentbased_always_on')
    .describe(`one of ${SAMPLERS.join(', ')}`),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .transform(Number)
    .refine((value) => value >= 0 && value <= 1)
    .default(1)
    .describe('a number from 0 to 1'),
}

/** The configuration, with defaults applied. */
export type Config = ReturnType<typeof readConfig>
export type TracingConfig = NonNullable<Config['tracing']>

/**
 * Returns the configuration of an environment. An empty variable counts as unset. Throws ConfigError for
 * a wrong value, and for an unknown variable whose name is nearly that of a known one.
 */
export function readConfig(environment: Record<string, string | undefined>) {
  rejectMisspelled(environment)
  const read = <Name extends keyof typeof variables>(name: Name) => {
    const schema = variables[name]
    const result = schema.safeParse(environment[name] || undefined)
    if (!result.success) throw new ConfigError(`${name} must be ${schema.description}`)
    return result.data as z.output<(typeof variables)[Name]>
  }
  const readTracing = () => {
    if (!read(TRACES_TO) || read('OTEL_SDK_DISABLED')) return undefined
    if (read('OTEL_TRACES_EXPORTER') === 'none') return undefined
    read('OTEL_EXPORTER_OTLP_PROTOCOL') // only checked: the exporter reads this and the endpoint itself
    return {
      sampler: read('OTEL_TRACES_SAMPLER'),
      /** The part of the calls that a ratio sampler traces, from 0 to 1. */
      ratio: read('OTEL_TRACES_SAMPLER_ARG'),
    }
  }
  const port = read('PORT')
  const metricsHost = read('METRICS_HOST')
  const metricsPort = read('METRICS_PORT')
  const config = {
    port,
    databaseUrl: read('DATABASE_URL'),
    baseUrl: read('BASE_URL') ?? `http://localhost:${port}/v1`,
    /** Public URL of REST on the staging installation; undefined where there is none. */
    stagingUrl: read('STAGING_URL'),
    /** Origins whose pages may call the service; `*` allows all. */
    corsOrigins: read('CORS_ORIGINS'),
    /** Calls a minute for each API key or IP address; undefined for no limit. */
    rateLimit: read('RATE_LIMIT'),
    /** The number of trusted proxies, or their IP addresses and subnets. */
    trustProxy: read('TRUST_PROXY'),
    /** Milliseconds that a call may wait for the database. */
    databaseTimeout: read('DATABASE_TIMEOUT'),
    /** Milliseconds that a graceful stop may take. */
    shutdownTimeout: read('SHUTDOWN_TIMEOUT'),
    /** Milliseconds between the report of unreadiness and the end of new connections. */
    shutdownDelay: read('SHUTDOWN_DELAY'),
    /** Milliseconds that an Idempotency-Key is kept. */
    idempotencyLifetime: read('IDEMPOTENCY_LIFETIME'),
    /** Where the metrics are served; undefined where they are off. */
    metrics: metricsPort === undefined ? undefined : { host: metricsHost, port: metricsPort },
    /** The number of serving processes. */
    workers: read('WORKERS'),
    /** The sampler of traces, by OpenTelemetry's names; undefined where tracing is off. */
    tracing: readTracing(),
  }
  if (config.shutdownDelay >= config.shutdownTimeout) {
    throw new ConfigError('SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT')
  }
  if (config.workers > 1 && config.databaseUrl.startsWith('sqlite:')) {
    throw new ConfigError('WORKERS must be 1 with the embedded database: set DATABASE_URL to MySQL')
  }
  return config
}

function rejectMisspelled(environment: Record<string, string | undefined>): void {
  // OpenTelemetry has many more variables, so of its names only this one is compared.
  const names = Object.keys(variables).filter(
    (name) => name === TRACES_TO || !name.startsWith('OTEL_'),
  )
  for (const [name, value] of Object.entries(environment)) {
    if (!value || Object.hasOwn(variables, name)) continue
    const known = nearMiss(name, names)
    if (known)
      throw new ConfigError(`${name} is not a variable of this service: did you mean ${known}?`)
  }
}

/** Returns the configuration of this process, from the environment and `.env`. Throws ConfigError. */
export function loadConfig(): Config {
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return readConfig(process.env)
}

function isDatabaseUrl(text: string): boolean {
  if (text.startsWith('sqlite:')) return !/^sqlite:(\?create)?$/.test(text)
  const url = URL.parse(text)
  if (url?.protocol !== 'mysql:' || url.hostname === '' || url.pathname.length < 2) return false
  try {
    // mysql2 decodes these, so a % in a password must be written as %25.
    decodeURIComponent(url.username + url.password + url.pathname)
    return true
  } catch {
    return false
  }
}

function isOrigin(text: string): boolean {
  return text === '*' || URL.parse(text)?.origin === text
}

function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits = '1', extra] = text.split('/')
  const version = isIP(address)
  return (
    version > 0 &&
    extra === undefined &&
    /^\d{1,3}$/.test(bits) &&
    Number(bits) > 0 && // 0 would trust every IP address
    Number(bits) <= (version === 4 ? 32 : 128)
  )
}
