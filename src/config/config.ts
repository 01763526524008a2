/** The configuration, from the environment and the file .env. */
import { isIP } from 'node:net'
import { platform } from 'node:process'
import { compile } from 'proxy-addr'
import { z } from 'zod'
import { mysqlQueryOf } from '../../db/url.ts'
import { loadVariables, quotesOf, UsageError, type Variables, valuesOf } from './environment.ts'
import { NAME } from './product.ts'

/** Returns the schema of a text. `rule` says for which `isValid` returns true, and does not throw. */
const text = (rule: string, isValid: (text: string) => boolean) =>
  z.string().refine((text) => {
    try {
      return isValid(text)
    } catch {
      return false
    }
  }, `must be ${rule}`)

const isInteger = (text: string) => /^\d{1,9}$/.test(text)

const integer = (least: number, most: number) =>
  text(
    `an integer from ${least} to ${most}`,
    (text) => isInteger(text) && Number(text) >= least && Number(text) <= most,
  ).transform(Number)

const port = integer(0, 65_535)

/** An address to listen on; undefined for all of them. */
const host = text(
  'an IP address or the name of a host, without brackets and a port, or *',
  (text) => !/[[\]]/.test(text),
).transform((text) => (text === '*' ? undefined : text))

const listOf = (text: string) => text.split(',').map((item) => item.trim())

const UNITS = new Map(Object.entries({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }))

/** Returns the milliseconds of a text such as `24h`; NaN for any other. */
const millisecondsOf = (text: string) =>
  Number.parseInt(text, 10) * (UNITS.get(text.replace(/^\d+/, '')) ?? Number.NaN)

/** Returns the schema of a duration, in milliseconds. Without a maximum it is a century: no API key lives longer. */
export function duration(least: string, most = '36525d') {
  const isValid = (value: number) => value >= millisecondsOf(least) && value <= millisecondsOf(most)
  const example = ['15m', '10s'].find((text) => isValid(millisecondsOf(text))) ?? most
  const rule = `must be a duration such as ${example}, from ${least} to ${most}`
  return z.string(rule).transform(millisecondsOf).refine(isValid, rule)
}

// An hour is far below the 24 days that a timer of Node can wait.
const timeout = duration('1ms', '1h')

// Headers carry the URL as it is, so it has only characters of RFC 3986, and no password.
const SERVER_URL = /^https?:\/\/[\w.~%:[\]-]+(\/[\w.~%!$&'()*+,;=:@-]+)*\/v1$/i
const serverUrl = text(
  'an http or https URL that ends in /v1',
  (text) => SERVER_URL.test(text) && URL.canParse(text),
)

/** Whether a proxy is trusted, by its IP address and by the number of proxies before it. */
export type Trust = (ipAddress: string, index: number) => boolean

/** Returns the trust of a number of proxies, or of their IP addresses, subnets and names. Throws for another text. */
function trustOf(text: string): Trust {
  const count = Number(text)
  if (isInteger(text)) return (_ipAddress, index) => index < count
  const proxies = listOf(text)
  // proxy-addr would take 8 and 010.0.0.1, too. It throws for a subnet of 0 bits.
  const isPlain = (proxy: string) => isIP(proxy.replace(/\/\d+$/, '')) > 0 || /^[a-z]+$/.test(proxy)
  if (!proxies.every(isPlain)) throw new TypeError('Not an IP address')
  return compile(proxies)
}

// The origin of a web view or an extension is no origin by the URL standard. A URL may have a host such as
// *.example, which is no pattern: it would match no page.
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\]+$/
const isOrigin = (text: string) =>
  text === '*' ||
  (!text.includes('*') && (URL.parse(text)?.origin === text || OTHER_ORIGIN.test(text)))

/** The variables, by their names in the configuration. An error is the end of a sentence that begins with the variable. */
const variables = z
  .object({
    port: port.default(3000),
    /** Undefined for all addresses of this machine. */
    listenHost: host.optional(),
    databaseUrl: text(
      'mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name, then also &ssl-ca=FILE, and &ssl-cert=FILE&ssl-key=FILE; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, where the path is that of a file, without ~ for a home folder, or empty',
      isDatabaseUrl,
    )
      // SQLite's own URLs have one slash or three; other programs mean either place by two.
      .refine(
        (url) => !/^sqlite:\/\/(?!\/)/.test(url),
        `must be sqlite:${NAME}.db for a file of this folder, or sqlite:/${NAME}.db for one of the root: sqlite:// could be either`,
      )
      .default(`sqlite:data/${NAME}.db?create`),
    baseUrl: serverUrl.optional(),
    /** Public URL of REST on the staging installation; undefined where there is none. */
    stagingUrl: serverUrl.optional(),
    /** Origins whose pages may call the service; `*` allows all. */
    corsOrigins: text('origins such as https://shop.example, separated by commas, or *', (text) =>
      listOf(text).every(isOrigin),
    )
      .transform(listOf)
      .default([]),
    /** Calls a minute for each API key or IP address; undefined for no limit. */
    rateLimit: integer(1, 999_999_999).optional(),
    trustProxy: text(
      'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
      (text) => typeof trustOf(text) === 'function',
    )
      .prefault('0')
      .transform(trustOf),
    /** Milliseconds that a call may wait for the database. The server closes requests slower than the maximum. */
    databaseTimeout: duration('1ms', '30s').prefault('5s'),
    /** Maximum number of connections to MySQL. */
    databasePoolSize: integer(1, 1_000).default(10),
    /** Milliseconds that an idle connection of a client stays open. */
    keepAliveTimeout: timeout.prefault('65s'),
    /** Milliseconds that a graceful stop may take. */
    shutdownTimeout: timeout.prefault('10s'),
    /** Milliseconds between the report of unreadiness and the end of new connections. */
    shutdownDelay: duration('0s', '1h').prefault('0s'),
    /** Milliseconds that an Idempotency-Key is kept. */
    idempotencyLifetime: duration('1m').prefault('24h'),
    logLevel: z
      .enum(['debug', 'info', 'warn', 'error'], 'must be debug, info, warn or error')
      .default('info'),
    /** Undefined where the metrics are off. */
    metricsPort: port.optional(),
    metricsHost: host.prefault('127.0.0.1'),
    /** Whether other processes of the service may listen on the same port. */
    reusePort: z
      .enum(['true', 'false'], 'must be true or false')
      .transform((text) => text === 'true')
      .default(false),
  })
  .refine(({ shutdownDelay, shutdownTimeout }) => shutdownDelay < shutdownTimeout, {
    path: ['shutdownDelay'],
    error: 'must be shorter than SHUTDOWN_TIMEOUT',
  })
  .refine((all) => !all.reusePort || (platform === 'linux' && isMysql(all.databaseUrl)), {
    path: ['reusePort'],
    error: 'needs Linux, and a DATABASE_URL of MySQL',
  })

/** Whether this is a URL of MySQL. It may be none: other checks have the message for that. */
const isMysql = (url: string) => URL.parse(url)?.protocol === 'mysql:'

/** Returns the variable of a field: DATABASE_URL of `databaseUrl`. */
const nameOf = (field: string) => field.replaceAll(/[A-Z]/g, '_$&').toUpperCase()

/** The configuration, with defaults applied. */
export type Config = ReturnType<typeof readConfig>

/** Returns the configuration of this process, from its environment and the file .env. Throws UsageError. */
export const loadConfig = (): Config => readConfig(...loadVariables())

/**
 * Returns the configuration of an environment and of the variables in .env. Throws UsageError, which does
 * not show a value: that of DATABASE_URL contains a password.
 */
export function readConfig(environment: Variables, dotenv: Variables = {}) {
  const fields = Object.keys(variables.shape)
  const { values, warnings } = valuesOf(fields.map(nameOf), environment, dotenv)
  const { data, error } = variables.safeParse(
    Object.fromEntries(fields.map((field) => [field, values[nameOf(field)]])),
  )
  if (error) {
    const [{ path, message }] = error.issues as [z.core.$ZodIssue] // an error has an issue
    const name = nameOf(String(path[0]))
    const quotes = warnings.find((warning) => warning === quotesOf(name))
    throw new UsageError(quotes ?? `${name} ${message}`)
  }
  return {
    ...data,
    baseUrl: data.baseUrl ?? `http://localhost:${data.port}/v1`,
    /** The folder of the caller of `npm run`, which changes it; not that of another package's script. */
    callerFolder: /^bin\/(node|keys)/.test(environment.npm_lifecycle_script ?? '')
      ? environment.INIT_CWD
      : undefined,
    /** How an operator calls the command for API keys: containers and systemd have no npm. */
    keysCommand: environment.npm_lifecycle_script ? 'npm run keys --' : 'node src/cli/keys.ts',
    /** Whether systemd waits to hear that the service is ready: https://www.freedesktop.org/software/systemd/man/252/sd_notify.html */
    isAwaited: Boolean(environment.NOTIFY_SOCKET),
    /** Sentences for the log. */
    warnings,
  }
}

/** Whether a text is a DATABASE_URL. Throws for some of those that are none. */
function isDatabaseUrl(text: string): boolean {
  // SQLite itself would take :memory: for a database in memory, and file: for a URI with options. Only a shell replaces
  // ~ by a home folder: the service would make one of that name.
  if (text.startsWith('sqlite:')) return !/^sqlite:(\?create$|$|:memory:|file:|~[^/]*\/)/.test(text)
  const url = new URL(text)
  // mysql2 decodes these, so a % in a password must be written as %25.
  decodeURIComponent(url.username + url.password + url.hostname + url.pathname)
  mysqlQueryOf(url)
  const { protocol, hostname, pathname, hash } = url
  return protocol === 'mysql:' && hostname !== '' && pathname.length > 1 && hash === ''
}
