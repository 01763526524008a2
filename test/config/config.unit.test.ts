/** The configuration: defaults, valid and invalid environment variables. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { ConfigError, readConfig } from '../../src/config/config.ts'

const defaults = {
  keepAliveTimeout: 65_000,
  port: 3000,
  databaseUrl: 'sqlite:data/petstore.db?create',
  baseUrl: 'http://localhost:3000/v1',
  stagingUrl: undefined,
  corsOrigins: [],
  rateLimit: undefined,
  trustProxy: 0,
  databaseTimeout: 5_000,
  databasePoolSize: 10,
  shutdownTimeout: 10_000,
  shutdownDelay: 0,
  idempotencyLifetime: 86_400_000,
  metrics: undefined,
  reusePort: false,
  exportsTraces: false,
}

test('an empty environment and empty variables result in the defaults', () => {
  expect(readConfig({})).toEqual(defaults)
  const names = [
    'PORT',
    'DATABASE_URL',
    'BASE_URL',
    'STAGING_URL',
    'CORS_ORIGINS',
    'RATE_LIMIT',
    'TRUST_PROXY',
    'DATABASE_TIMEOUT',
    'DATABASE_POOL_SIZE',
    'SHUTDOWN_TIMEOUT',
    'SHUTDOWN_DELAY',
    'IDEMPOTENCY_LIFETIME',
    'KEEP_ALIVE_TIMEOUT',
    'METRICS_PORT',
    'METRICS_HOST',
    'REUSE_PORT',
  ]
  expect(readConfig(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(readConfig({}))
})

/** Returns the names of all variables that the configuration reads. */
function namesRead(): string[] {
  const names = new Set<string>()
  const environment = new Proxy<Record<string, string>>(
    {},
    {
      get: (_, name: string) => {
        names.add(name)
        return undefined
      },
    },
  )
  readConfig(environment)
  return [...names].sort()
}

test('README and .env.example have each variable', () => {
  const rows = [...readFileSync('README.md', 'utf8').matchAll(/^\| (`[A-Z_`, ]+`) \|/gm)]
  const described = rows.flatMap(([, cell = '']) => cell.match(/[A-Z_]+/g) ?? []).sort()
  expect(Object.keys(parseEnv(readFileSync('.env.example', 'utf8'))).sort()).toEqual(described)
  expect(described).toEqual(namesRead())
})

test('.env.example has the defaults', () => {
  const example = readFileSync('.env.example', 'utf8')
  expect(readConfig(parseEnv(example))).toEqual(readConfig({}))
})

test('BASE_URL follows PORT unless it is set', () => {
  expect(readConfig({ PORT: '8080' })).toMatchObject({
    port: 8080,
    baseUrl: 'http://localhost:8080/v1',
  })
  const baseUrl = 'https://petstore.example/shop/v1'
  expect(readConfig({ PORT: '8080', BASE_URL: baseUrl })).toMatchObject({ baseUrl })
})

test.each(['0', '1', '65535'])('PORT=%s is valid', (PORT) => {
  expect(readConfig({ PORT }).port).toBe(Number(PORT))
})

test.each([
  'mysql://root@localhost/petstore',
  'mysql://user:p%40ss@db.example:3307/petstore',
  'mysql://user:secret@[::1]:3306/petstore',
  'mysql://root@localhost/petstore?ssl-mode=REQUIRED',
  'mysql://root@10.0.0.1/petstore?ssl-mode=VERIFY_CA',
  'mysql://root@localhost/petstore?socketPath=/run/mysqld/mysqld.sock',
  'mysql://root@localhost/petstore?socketPath=/cloudsql/project:region:one',
  'mysql://root@db.example/petstore?ssl-mode=VERIFY_IDENTITY',
  'sqlite:petstore.db',
  'sqlite:/var/lib/petstore/petstore.db',
])('DATABASE_URL=%s is valid', (DATABASE_URL) => {
  expect(readConfig({ DATABASE_URL }).databaseUrl).toBe(DATABASE_URL)
})

const mysql = { DATABASE_URL: 'mysql://root@localhost/petstore' }

// Minimum, maximum and every form of each variable; all others keep their defaults.
test.each<[Record<string, string>, object]>([
  ...['https://pets.example/v1', 'http://127.0.0.1:8080/v1', 'http://[::1]:3000/v1'].map(
    (url): [Record<string, string>, object] => [{ BASE_URL: url }, { baseUrl: url }],
  ),
  ...['HTTPS://Pets.Example/V1', "https://pets.example/a-b_c.d~e!$&'()*+,;=:@%20/v1"].map(
    (url): [Record<string, string>, object] => [{ STAGING_URL: url }, { stagingUrl: url }],
  ),
  [
    { CORS_ORIGINS: 'https://a.example,http://localhost:5173' },
    { corsOrigins: ['https://a.example', 'http://localhost:5173'] },
  ],
  [{ CORS_ORIGINS: 'https://a.example , *' }, { corsOrigins: ['https://a.example', '*'] }],
  [{ CORS_ORIGINS: 'http://[::1]:5173' }, { corsOrigins: ['http://[::1]:5173'] }],
  [{ RATE_LIMIT: '1' }, { rateLimit: 1 }],
  [{ RATE_LIMIT: '999999999' }, { rateLimit: 999_999_999 }],
  [{ TRUST_PROXY: '0' }, { trustProxy: 0 }],
  [{ TRUST_PROXY: '2' }, { trustProxy: 2 }],
  [{ TRUST_PROXY: 'loopback, 10.0.0.0/8, ::1' }, { trustProxy: ['loopback', '10.0.0.0/8', '::1'] }],
  ...[
    ...['linklocal', 'uniquelocal', '10.0.0.1', '10.0.0.10', '10.0.0.0/1', '10.0.0.0/10'],
    ...['10.0.0.1/32', '::/1', 'fc00::/10', '::1/128'],
  ].map((network): [Record<string, string>, object] => [
    { TRUST_PROXY: network },
    { trustProxy: [network] },
  ]),
  [{ DATABASE_TIMEOUT: '1ms' }, { databaseTimeout: 1 }],
  [{ DATABASE_TIMEOUT: '30s' }, { databaseTimeout: 30_000 }],
  [{ DATABASE_POOL_SIZE: '1' }, { databasePoolSize: 1 }],
  [{ SHUTDOWN_TIMEOUT: '1ms' }, { shutdownTimeout: 1 }],
  [{ SHUTDOWN_TIMEOUT: '1h' }, { shutdownTimeout: 3_600_000 }],
  [{ SHUTDOWN_DELAY: '0s' }, { shutdownDelay: 0 }],
  [{ SHUTDOWN_DELAY: '9999ms' }, { shutdownDelay: 9_999 }],
  [
    { SHUTDOWN_DELAY: '59m', SHUTDOWN_TIMEOUT: '60m' },
    { shutdownDelay: 3_540_000, shutdownTimeout: 3_600_000 },
  ],
  [{ KEEP_ALIVE_TIMEOUT: '620s' }, { keepAliveTimeout: 620_000 }],
  [{ IDEMPOTENCY_LIFETIME: '1m' }, { idempotencyLifetime: 60_000 }],
  [{ IDEMPOTENCY_LIFETIME: '36h' }, { idempotencyLifetime: 129_600_000 }],
  [{ IDEMPOTENCY_LIFETIME: '90d' }, { idempotencyLifetime: 7_776_000_000 }],
  [{ IDEMPOTENCY_LIFETIME: '36525d' }, { idempotencyLifetime: 3_155_760_000_000 }],
  [{ METRICS_PORT: '0' }, { metrics: { host: '127.0.0.1', port: 0 } }],
  [{ METRICS_PORT: '65535' }, { metrics: { host: '127.0.0.1', port: 65_535 } }],
  [{ METRICS_PORT: '9090', METRICS_HOST: '::' }, { metrics: { host: '::', port: 9_090 } }],
  [{ METRICS_HOST: '::' }, {}],
  [
    { REUSE_PORT: 'true', ...mysql },
    { reusePort: true, databaseUrl: mysql.DATABASE_URL },
  ],
  [{ REUSE_PORT: 'false' }, {}],
])('%j is valid', (environment, expected) => {
  expect(readConfig(environment)).toEqual({ ...defaults, ...expected })
})

test.each([
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_ZIPKIN_ENDPOINT',
])('%s exports traces', (name) => {
  expect(readConfig({ [name]: 'http://localhost:4318' }).exportsTraces).toBe(true)
})

test.each([
  [{ SHUTDOWN_DELAY: '10s' }, 'SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT'],
  [
    { SHUTDOWN_TIMEOUT: '3s', SHUTDOWN_DELAY: '3s' },
    'SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT',
  ],
  [{ REUSE_PORT: 'true' }, 'REUSE_PORT=true needs Linux, and a DATABASE_URL of MySQL'],
])('%j is rejected', (environment, message) => {
  expect(() => readConfig(environment)).toThrow(new ConfigError(message))
})

const url = 'an http or https URL that ends in /v1'
const database =
  'mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, or empty'
const duration = (range: string) => `a duration from ${range}`
const wrong: [name: string, expected: string, values: string[]][] = [
  [
    'PORT',
    'an integer from 0 to 65535',
    ['abc', '-1', '65536', '3000.5', ' 3000', '0x50', '1e3', '999999'],
  ],
  [
    'DATABASE_URL',
    database,
    [
      ...['postgres://user:secret@host/petstore', 'mysql:secret', 'mysql://user:secret@host'],
      ...['mysql://user:secret@host/', 'mysql://user:sec#ret@host/petstore'],
      ...['mysql://us%er:secret@host/petstore', 'mysql://user:100%@host/petstore'],
      ...['mysql://user:secret@host/50%', 'secret', 'sqlite:', 'sqlite:?create'],
      '/data/petstore.db',
      ...[
        ...['ssl=true', 'sslmode=require', 'ssl-mode=PREFERRED', 'ssl-mode=required', 'ssl-mode'],
        ...['ssl-mode=', 'ssl-mode=REQUIRED&ssl-mode=REQUIRED', 'ssl-mode=REQUIRED&debug=true'],
        ...['charset=utf8', 'ssl-mode=REQUIRED#x', 'socketPath=', 'socketPath=one.sock'],
      ].map((query) => `mysql://user:secret@host/petstore?${query}`),
      'mysql://user:secret@host/petstore#?ssl-mode=REQUIRED',
      // mysql2 compares the certificate of an IP address with the name localhost.
      ...['10.0.0.1', '[::1]', '%310.0.0.1'].map(
        (host) => `mysql://user:secret@${host}/petstore?ssl-mode=VERIFY_IDENTITY`,
      ),
    ],
  ],
  ...['BASE_URL', 'STAGING_URL'].map((name): [string, string, string[]] => [
    name,
    url,
    [
      ...[
        'https://petstore.example',
        'https://petstore.example/v1/',
        'https://petstore.example/v2',
      ],
      ...['https://petstore.example/?/v1', 'https://petstore.example/#/v1', '/v1'],
      ...['https://petstore.example/xv1', 'ftp://petstore.example/v1', 'petstore.example/v1'],
      ...['https://例え.example/v1', 'https://petstore.example/ä/v1'],
      ...['https://petstore.example/<b>"/v1', 'https://user:secret@petstore.example/v1'],
    ],
  ]),
  [
    'CORS_ORIGINS',
    'origins such as https://shop.example, separated by commas, or *',
    [
      ...['shop.example', 'https://shop.example/', 'https://shop.example/x', 'https://a.example,'],
      // A browser sends an origin in lower case, and without the usual port.
      ...['https://Shop.example', 'https://shop.example:443', 'null'],
      // No origin has a `*`, and no other pattern than `*` is supported.
      ...['https://*.shop.example', 'https://*', 'capacitor://', 'capacitor:localhost'],
      ...['capacitor://localhost/', 'Capacitor://localhost', 'chrome-extension://a b'],
    ],
  ],
  [
    'RATE_LIMIT',
    'an integer of calls a minute, from 1, or empty for no limit',
    ['0', '-1', '1.5', 'many', '1000000000', '1e3', ' 5'],
  ],
  [
    'TRUST_PROXY',
    'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
    [
      ...['-1', 'everybody', '10.0.0.0/33', '0.0.0.0/0', '::/0', '::1/129', '1.2.3', '1.5'],
      ...['10.0.0.0/8/8', '10.0.0.0/', '10.0.0.0/0x8', 'Loopback', 'loopback,'],
      // Express does not parse these.
      ...['64:ff9b::1.2.3.4', '64:ff9b::1.2.3.4/96', 'fe80::1%br-1'],
    ],
  ],
  [
    'DATABASE_TIMEOUT',
    duration('1ms to 30s, such as 5s'),
    ['0s', '31s', '30001ms', '5', '-5s', '1.5s', '5 s', '5S'],
  ],
  [
    'SHUTDOWN_TIMEOUT',
    duration('1ms to 1h, such as 10s'),
    ['0s', '61m', '3600001ms', '10', '10S', 'never'],
  ],
  [
    'SHUTDOWN_DELAY',
    'a duration such as 5s, shorter than SHUTDOWN_TIMEOUT',
    ['5', '-1s', '36526d'],
  ],
  ['IDEMPOTENCY_LIFETIME', duration('1m, such as 24h'), ['59s', '59999ms', '0s', '24', '36526d']],
  ['KEEP_ALIVE_TIMEOUT', duration('1ms to 1h, such as 65s'), ['0s', '61m', '65']],
  ['METRICS_PORT', 'an integer from 0 to 65535, or empty', ['65536', '-1', 'x']],
  ['REUSE_PORT', 'true or false', ['1', 'yes']],
]

test.each(
  wrong.flatMap(([name, expected, values]) => values.map((value) => [name, value, expected])),
)('%s=%s is rejected with the expected form', (name, value, expected) => {
  const read = () => readConfig({ [`${name}`]: value })
  expect(read).toThrow(new ConfigError(`${name} must be ${expected}`))
})

test.each([
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['database_url', 'DATABASE_URL'],
  ['PROT', 'PORT'],
  ['PORTS', 'PORT'],
  ['REUSEPORT', 'REUSE_PORT'],
  ['BASEURL', 'BASE_URL'],
  ['CORS_ORIGIN', 'CORS_ORIGINS'],
  ['RATELIMIT', 'RATE_LIMIT'],
  ['TRUSTED_PROXY', 'TRUST_PROXY'],
  ['SHUTDOWN_TIMOUT', 'SHUTDOWN_TIMEOUT'],
  ['IDEMPOTENCY_LIVETIME', 'IDEMPOTENCY_LIFETIME'],
  ['METRIC_PORT', 'METRICS_PORT'],
])('%s is rejected as a typo of %s, unless it is empty', (written, meant) => {
  const message = `${written} is not a variable of this service: did you mean ${meant}?`
  expect(() => readConfig({ [written]: 'secret' })).toThrow(new ConfigError(message))
  expect(readConfig({ [written]: '' })).toEqual(readConfig({}))
})

const watched = [
  ...[
    'PORT',
    'DATABASE_URL',
    'BASE_URL',
    'STAGING_URL',
    'CORS_ORIGINS',
    'RATE_LIMIT',
    'REUSE_PORT',
  ],
  ...['TRUST_PROXY', 'DATABASE_TIMEOUT', 'SHUTDOWN_TIMEOUT', 'SHUTDOWN_DELAY', 'METRICS_PORT'],
  ...['METRICS_HOST', 'IDEMPOTENCY_LIFETIME'],
]

/** All typos of a name with one letter omitted, doubled, swapped or replaced. */
const typos = (name: string): string[] =>
  [...name].flatMap((letter, at) => {
    const [before, after] = [name.slice(0, at), name.slice(at + 1)]
    const swapped =
      after && after[0] !== letter ? [before + after[0] + letter + after.slice(1)] : []
    return [before + after, `${before}${letter}${letter}${after}`, `${before}0${after}`, ...swapped]
  })

test.each(watched)('%s: each single typo is rejected, and two typos in a long name', (name) => {
  const expectMeant = (written: string, meant: string | undefined) => {
    const read = () => readConfig({ [written]: 'secret' })
    if (!meant) return expect(read, written).not.toThrow()
    expect(read, written).toThrow(
      new ConfigError(`${written} is not a variable of this service: did you mean ${meant}?`),
    )
  }
  for (const typo of typos(name)) expectMeant(typo, name)
  if (name.length <= 5) {
    for (const typo of typos(name)) expectMeant(`1${typo}1`, undefined)
    return
  }
  for (const typo of typos(name.slice(2, -2))) {
    const twice = `${name.slice(0, 2)}${typo}${name.slice(-2)}1`
    expectMeant(twice, name)
    expectMeant(`1${twice}`, undefined)
  }
})

test('variables of other programs are accepted, however short', () => {
  const others = [
    ...['HOST', 'PATH', 'HOME', 'PWD', 'TERM', 'SHELL', 'USER', 'LANG', 'NODE', 'INIT_CWD', '_'],
    ...['DATABASE', 'DATABASE_HOST', 'DATABASE_PORT', 'DB_URL', 'MYSQL_URL', 'REDIS_URL', 'URL'],
    ...['BASE_DIR', 'HTTP_PROXY', 'NO_PROXY', 'METRICS', 'LIMIT', 'CORS', 'PORT_HTTP'],
    ...['npm_config_cache', 'npm_lifecycle_event', 'NODE_OPTIONS', 'PETSTORE_PORT', 'HTTP_PORT'],
    'constructor',
  ]
  expect(readConfig(Object.fromEntries(others.map((name) => [name, 'x'])))).toEqual(readConfig({}))
})
