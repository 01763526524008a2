/** The configuration: defaults, valid and invalid environment variables. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { parseDotenv, UsageError } from '../../src/config/environment.ts'
import { newFolder } from '../support/database.ts'

/** The fields of a configuration without variables. */
const defaults = {
  keepAliveTimeout: 65_000,
  logLevel: 'info',
  port: 3000,
  databaseUrl: 'sqlite:data/petstore.db?create',
  baseUrl: 'http://localhost:3000/v1',
  stagingUrl: undefined,
  corsOrigins: [],
  rateLimit: undefined,
  trustProxy: expect.any(Function),
  databaseTimeout: 5_000,
  databasePoolSize: 10,
  shutdownTimeout: 10_000,
  shutdownDelay: 0,
  idempotencyLifetime: 86_400_000,
  metricsPort: undefined,
  metricsHost: '127.0.0.1',
  listenHost: undefined,
  reusePort: false,
  callerFolder: undefined,
  keysCommand: 'node src/cli/keys.ts',
  isAwaited: false,
  warnings: [],
}

/** What is read of no variables, to which other tests add: the following one alone says what that is. */
const unset = { ...readConfig({}), trustProxy: expect.any(Function) }

test.each(Object.entries(defaults))('%s is %j by default', (field, value) => {
  expect(readConfig({})).toHaveProperty(field, value)
})

test('empty variables result in the defaults, and there are no others', () => {
  expect(Object.keys(unset).sort()).toEqual(Object.keys(defaults).sort())
  expect(readConfig(Object.fromEntries(namesRead().map((name) => [name, ''])))).toEqual(unset)
})

/** Returns the names of all variables that the configuration reads. */
function namesRead(): string[] {
  const names = new Set<string>()
  readConfig(new Proxy({}, { get: (_, name: string) => void names.add(name) }))
  const ofNpm = ['INIT_CWD', 'npm_lifecycle_script']
  const ofOthers = [...ofNpm, 'KUBERNETES_SERVICE_HOST', 'NOTIFY_SOCKET']
  return [...names].filter((name) => !ofOthers.includes(name)).sort()
}

test('README and .env.example have each variable', () => {
  const rows = [...readFileSync('README.md', 'utf8').matchAll(/^\| (`[A-Z_`, ]+`) \|/gm)]
  const described = rows.flatMap(([, cell = '']) => cell.match(/[A-Z_]+/g) ?? []).sort()
  expect(described).toEqual(namesRead())
  expect(Object.keys(parseDotenv(readFileSync('.env.example', 'utf8'))).sort()).toEqual(described)
})

test('.env.example has the defaults', () => {
  const example = parseDotenv(readFileSync('.env.example', 'utf8'))
  expect(readConfig({}, example)).toEqual(unset)
  expect(example.TRUST_PROXY).toBe('0')
})

const mysql = { DATABASE_URL: 'mysql://root@localhost/petstore' }

/** Texts that a variable keeps as they are, in this field. */
const kept = (name: string, field: string, texts: string[]): [Record<string, string>, object][] =>
  texts.map((text) => [{ [name]: text }, { [field]: text }])

// Minimum, maximum and every form of each variable; all others keep their defaults.
test.each<[Record<string, string>, object]>([
  ...[0, 1, 8080, 65_535].map((port): [Record<string, string>, object] => [
    { PORT: String(port) },
    { port, baseUrl: `http://localhost:${port}/v1` },
  ]),
  ...kept('DATABASE_URL', 'databaseUrl', [
    'mysql://root@localhost/petstore',
    'mysql://user:p%40ss@db.example:3307/petstore',
    'mysql://user:secret@[::1]:3306/petstore',
    'mysql://root@localhost/petstore?ssl-mode=REQUIRED',
    'mysql://root@10.0.0.1/petstore?ssl-mode=VERIFY_CA',
    'mysql://root@localhost/petstore?socketPath=/run/mysqld/mysqld.sock',
    'mysql://root@localhost/petstore?socketPath=/cloudsql/project:region:one',
    'mysql://root@db.example/petstore?ssl-mode=VERIFY_IDENTITY',
    'mysql://root@db.example/petstore?ssl-ca=ca.pem&ssl-mode=VERIFY_IDENTITY',
    'mysql://root@db.example/petstore?ssl-key=/k.pem&ssl-mode=VERIFY_CA&ssl-cert=/c.pem&ssl-ca=/ca.pem',
    'sqlite:petstore.db',
    'sqlite:/var/lib/petstore/petstore.db',
    'sqlite:///var/lib/petstore/petstore.db',
  ]),
  ...kept('BASE_URL', 'baseUrl', ['https://pets.example/v1', 'http://[::1]:3000/v1']),
  ...kept('STAGING_URL', 'stagingUrl', [
    'HTTPS://Pets.Example/V1',
    "https://pets.example/a-b_c.d~e!$&'()*+,;=:@%20/v1",
  ]),
  ...[
    ['https://a.example', 'http://localhost:5173'],
    ['http://[::1]:5173'],
    ...[['capacitor://localhost'], ['chrome-extension://abcdefgh'], ['app://shop.example:80']],
  ].map((corsOrigins): [Record<string, string>, object] => [
    { CORS_ORIGINS: corsOrigins.join() },
    { corsOrigins },
  ]),
  [{ CORS_ORIGINS: 'https://a.example , *' }, { corsOrigins: ['https://a.example', '*'] }],
  [{ RATE_LIMIT: '1' }, { rateLimit: 1 }],
  [{ RATE_LIMIT: '999999999' }, { rateLimit: 999_999_999 }],
  // ip-address.unit.test.ts has what they trust.
  ...[
    ...['0', '2', 'loopback, 10.0.0.0/8, ::1', 'linklocal', 'uniquelocal', '10.0.0.1'],
    ...['10.0.0.0/1', '10.0.0.1/32', '::/1', 'fc00::/10', '::1/128'],
  ].map((TRUST_PROXY): [Record<string, string>, object] => [{ TRUST_PROXY }, {}]),
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
  [{ METRICS_PORT: '0' }, { metricsPort: 0 }],
  [{ METRICS_PORT: '65535' }, { metricsPort: 65_535 }],
  [{ METRICS_HOST: '::' }, { metricsHost: '::' }],
  [
    { METRICS_HOST: '*', LISTEN_HOST: '*' },
    { metricsHost: undefined, listenHost: undefined },
  ],
  [
    { REUSE_PORT: 'true', ...mysql },
    { reusePort: true, databaseUrl: mysql.DATABASE_URL },
  ],
  [
    { REUSE_PORT: 'true', DATABASE_URL: ` ${mysql.DATABASE_URL}` },
    { reusePort: true, databaseUrl: ` ${mysql.DATABASE_URL}` },
  ],
  [{ REUSE_PORT: 'false' }, {}],
  [{ LISTEN_HOST: '127.0.0.1' }, { listenHost: '127.0.0.1' }],
  ...["p4$$/#?%@:' ", 'ä'].map((DATABASE_PASSWORD): [Record<string, string>, object] => [
    { DATABASE_URL: mysql.DATABASE_URL, DATABASE_PASSWORD },
    { databaseUrl: `mysql://root:${encodeURIComponent(DATABASE_PASSWORD)}@localhost/petstore` },
  ]),
])('%j is valid', (environment, expected) => {
  expect(readConfig(environment)).toEqual({ ...unset, ...expected })
})

test.each([
  [{ REUSE_PORT: 'true' }, 'REUSE_PORT needs Linux, and a DATABASE_URL of MySQL'],
  [{ SHUTDOWN_DELAY: '10s' }, 'SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT'],
  [
    { SHUTDOWN_TIMEOUT: '3s', SHUTDOWN_DELAY: '3s' },
    'SHUTDOWN_DELAY must be shorter than SHUTDOWN_TIMEOUT',
  ],
  ...[{}, { DATABASE_URL: 'mysql://root:x@localhost/petstore' }].map(
    (database): [Record<string, string>, string] => [
      { DATABASE_PASSWORD: 'x', ...database },
      'DATABASE_PASSWORD needs a DATABASE_URL of MySQL without a password',
    ],
  ),
  [
    { DATABASE_URL_FILE: 'url', DATABASE_URL: 'sqlite:x' },
    'DATABASE_URL and DATABASE_URL_FILE are both set: unset one',
  ],
  [{ DATABASE_URL: 'sqlite:a\0.db' }, 'DATABASE_URL must not contain the character NUL'],
  [{ LISTEN_HOST: 'a\0' }, 'LISTEN_HOST must not contain the character NUL'],
  [
    { DATABASE_URL_FILE: 'missing' },
    "DATABASE_URL_FILE: ENOENT: no such file or directory, open 'missing'",
  ],
])('%j is rejected', (environment, message) => {
  expect(() => readConfig(environment)).toThrow(new UsageError(message))
})

const url = 'an http or https URL that ends in /v1'
const database =
  'mysql://user:password@host:3306/database (special characters percent-encoded; for TLS with ?ssl-mode=REQUIRED, VERIFY_CA, or VERIFY_IDENTITY and a host name, then also &ssl-ca=FILE, and &ssl-cert=FILE&ssl-key=FILE; for a socket with ?socketPath=/path), or sqlite:path, or sqlite:path?create, where the path is that of a file, without ~ for a home folder, or empty'
const duration = (range: string, example = '15m') => `a duration such as ${example}, from ${range}`
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
      ...['sqlite::memory:', 'sqlite::memory:?create', 'sqlite:file:/var/lib/petstore.db?create'],
      ...['/data/petstore.db', 'sqlite:~/petstore.db?create', 'sqlite:~zoe/petstore.db'],
      ...[
        ...['ssl=true', 'sslmode=require', 'ssl-mode=PREFERRED', 'ssl-mode=required', 'ssl-mode'],
        ...['ssl-mode=', 'ssl-mode=REQUIRED&ssl-mode=REQUIRED', 'ssl-mode=REQUIRED&debug=true'],
        ...['ssl-cert=c&ssl-key=k', 'ssl-ca=c', 'ssl-mode=REQUIRED&ssl-cert=c'],
        ...['ssl-mode=REQUIRED&ssl-ca=', 'ssl-mode=REQUIRED&ssl-cert=c&ssl-cert=c&ssl-key=k'],
        ...['charset=utf8', 'ssl-mode=REQUIRED#x', 'socketPath=', 'socketPath=one.sock'],
        'socketPath=/one.sock&charset=utf8',
      ].map((query) => `mysql://user:secret@host/petstore?${query}`),
      'mysql://user:secret@host/petstore#?ssl-mode=REQUIRED',
      // mysql2 compares the certificate of an IP address with the name localhost.
      ...['10.0.0.1', '[::1]', '%310.0.0.1'].map(
        (host) => `mysql://user:secret@${host}/petstore?ssl-mode=VERIFY_IDENTITY`,
      ),
    ],
  ],
  [
    'DATABASE_URL',
    'sqlite:petstore.db for a file of this folder, or sqlite:/petstore.db for one of the root: sqlite:// could be either',
    ['sqlite://data/petstore.db?create', 'sqlite://petstore.db', 'sqlite://'],
  ],
  ...['BASE_URL', 'STAGING_URL'].map((name): [string, string, string[]] => [
    name,
    url,
    [
      ...['https://petstore.example', 'https://petstore.example/v1/', '/v1'],
      ...['https://petstore.example/v2', 'https://petstore.example/?/v1'],
      'https://petstore.example/#/v1',
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
    'an integer from 1 to 999999999',
    ['0', '-1', '1.5', 'many', '1000000000', '1e3', ' 5'],
  ],
  [
    'TRUST_PROXY',
    'the number of trusted proxies, or their IP addresses or subnets, separated by commas',
    [
      ...['-1', 'everybody', '10.0.0.0/33', '0.0.0.0/0', '::/0', '::1/129', '1.2.3', '1.5'],
      ...['10.0.0.0/8/8', '10.0.0.0/', '10.0.0.0/0x8', 'Loopback', 'loopback,', '010.0.0.1'],
      'loopback, 8',
      // Express does not parse these.
      ...['64:ff9b::1.2.3.4', '64:ff9b::1.2.3.4/96', 'fe80::1%br-1'],
    ],
  ],
  [
    'DATABASE_TIMEOUT',
    duration('1ms to 30s', '10s'),
    ['0s', '31s', '30001ms', '5', '-5s', '1.5s', '5 s', '5S'],
  ],
  ['SHUTDOWN_TIMEOUT', duration('1ms to 1h'), ['0s', '61m', '3600001ms', '10', '10S', 'never']],
  ['SHUTDOWN_DELAY', duration('0s to 1h'), ['5', '-1s', '3601s']],
  ['IDEMPOTENCY_LIFETIME', duration('1m to 36525d'), ['59s', '59999ms', '0s', '24', '36526d']],
  ['KEEP_ALIVE_TIMEOUT', duration('1ms to 1h'), ['0s', '61m', '65']],
  ['REUSE_PORT', 'true or false', ['1', 'yes']],
  ...['LISTEN_HOST', 'METRICS_HOST'].map((name): [string, string, string[]] => [
    name,
    'an IP address or the name of a host, without brackets and a port, or *',
    ['[::1]', '[::1]:3000'],
  ]),
  ['METRICS_PORT', 'an integer from 0 to 65535', ['65536', '-1', 'x', 'tcp://10.3.0.7:9464']],
]

test.each(
  wrong.flatMap(([name, expected, values]) => values.map((value) => [name, value, expected])),
)('%s=%s is rejected with the expected form', (name, value, expected) => {
  const read = () => readConfig({ REUSE_PORT: 'true', [`${name}`]: value }) // it reads DATABASE_URL, too
  expect(read).toThrow(new UsageError(`${name} must be ${expected}`))
})

test('DATABASE_URL_FILE and DATABASE_PASSWORD_FILE name files, which are not empty', () => {
  const folder = newFolder()
  const file = path.join(folder, 'url')
  writeFileSync(file, `${mysql.DATABASE_URL}\n`)
  expect(readConfig({ DATABASE_URL_FILE: file }).databaseUrl).toBe(mysql.DATABASE_URL)
  expect(() => readConfig({ DATABASE_URL_FILE: '/dev/null' })).toThrow(
    /^DATABASE_URL_FILE: .+ empty/,
  )
  writeFileSync(file, "\uFEFFit's #1 \r\n")
  const withoutPassword = { DATABASE_URL: 'mysql://shop@db/pets', DATABASE_PASSWORD_FILE: file }
  expect(readConfig(withoutPassword).databaseUrl).toBe("mysql://shop:it's%20%231%20@db/pets")
})

test('line ends after a value are not part of it, as of a secret that echo has made', () => {
  const { DATABASE_URL } = mysql
  const made = readConfig({ DATABASE_URL: 'mysql://shop@db/pets', DATABASE_PASSWORD: 'pw \r\n' })
  expect(made).toMatchObject({ databaseUrl: 'mysql://shop:pw%20@db/pets', warnings: [] })
  const others = { DATABASE_URL: `${DATABASE_URL}\n`, PORT: '3001\n', RATE_LIMIT: '\n' }
  const read = { databaseUrl: DATABASE_URL, port: 3001, rateLimit: undefined }
  expect(readConfig(others)).toMatchObject(read)
})

test('quotes around a value, which docker run --env-file keeps, are pointed out', () => {
  const hint = (name: string) =>
    `${name} has quotes around its value, which docker run --env-file keeps: remove them, unless they belong to it`
  for (const quoted of ['"pw"', "'pw'"]) {
    const withPassword = { DATABASE_URL: 'mysql://shop@db/pets', DATABASE_PASSWORD: quoted }
    expect(readConfig(withPassword).warnings).toEqual([hint('DATABASE_PASSWORD')])
  }
  for (const [name, value] of Object.entries({ PORT: "'80'", DATABASE_URL: '"mysql://a@b/c"' })) {
    expect(() => readConfig({ [name]: value })).toThrow(new UsageError(hint(name)))
  }
  // Those that are a part of a password, and those of .env, which Node removes.
  const plain = { DATABASE_URL: 'mysql://shop@db/pets', DATABASE_PASSWORD: '"a"b' }
  expect(readConfig(plain).warnings).toEqual([])
})

const meant = (written: string, name: string) =>
  `${written} is not a variable of this service: did you mean ${name}?`

test.each([
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['DATABSE_ULR', 'DATABASE_URL'],
  ['database_url', 'DATABASE_URL'],
  ['DATABASE_URL_FLIE', 'DATABASE_URL_FILE'],
  ['DATABASE_PASWORD', 'DATABASE_PASSWORD'],
  ['PROT', 'PORT'],
  ['PORT0', 'PORT'],
  ['BASEURL', 'BASE_URL'],
  ['METRICS_HOT', 'METRICS_HOST'],
  ['TRUSTED_PROXY', 'TRUST_PROXY'],
  ['IDEMPOTENCY_LIVETIME', 'IDEMPOTENCY_LIFETIME'],
])('%s is reported as a typo of %s, unless it is empty', (written, name) => {
  const message = meant(written, name)
  // The file .env belongs to the operator alone.
  expect(() => readConfig(mysql, { [written]: 'secret' })).toThrow(new UsageError(message))
  // The environment belongs to the platform, too, but a new, empty database is worse than no start.
  expect(readConfig({ ...mysql, [written]: 'secret' }).warnings).toEqual([message])
  if (name.startsWith('DATABASE_')) {
    expect(() => readConfig({ [written]: 'secret' })).toThrow(new UsageError(message))
  } else expect(readConfig({ [written]: 'secret' })).toEqual({ ...unset, warnings: [message] })
  expect(readConfig({ [written]: '' }, { [written]: '' })).toEqual(unset)
})

test('variables of other programs are ignored, however short', () => {
  const others = [
    ...[
      'WORKERS',
      'HOST',
      'PATH',
      'HOME',
      'PWD',
      'TERM',
      'SHELL',
      'USER',
      'LANG',
      'NODE',
      'INIT_CWD',
      '_',
    ],
    ...['DATABASE', 'DATABASE_HOST', 'DATABASE_PORT', 'DB_URL', 'MYSQL_URL', 'REDIS_URL', 'URL'],
    ...[
      'BASE_DIR',
      'HTTP_PROXY',
      'NO_PROXY',
      'METRICS',
      'LIMIT',
      'CORS',
      'PORT_HTTP',
      'PROD',
      'LISTEN_PORT',
    ],
    ...['npm_config_cache', 'npm_lifecycle_event', 'NODE_OPTIONS', 'PETSTORE_PORT', 'HTTP_PORT'],
    'constructor',
  ]
  expect(readConfig(Object.fromEntries(others.map((name) => [name, 'x'])))).toEqual(unset)
})

test('the embedded database in Kubernetes is a warning', () => {
  const KUBERNETES_SERVICE_HOST = '10.96.0.1'
  const [warning] = readConfig({ KUBERNETES_SERVICE_HOST }).warnings
  expect(warning).toMatch(/^The embedded database is of this Pod alone, .+: set DATABASE_URL$/)
  expect(readConfig({ KUBERNETES_SERVICE_HOST, ...mysql }).warnings).toEqual([])
  const DATABASE_URL = 'sqlite:/data/petstore.db' // a choice of the operator
  expect(readConfig({ KUBERNETES_SERVICE_HOST, DATABASE_URL }).warnings).toEqual([])
})

test('a line of .env that is neither blank, nor a comment, nor NAME=value ends the start', () => {
  const good = `# it's\u00A0a "comment\n  # C='\n\texport \tPORT\t= 1 \r\nA='#\n\u2028x'\r\nB="it's"\t# y\nC=a\u3000b #c#\n`
  const variables = { PORT: '1', A: '#\n\u2028x', B: "it's", C: 'a\u3000b' }
  expect(parseDotenv(good)).toEqual({ ...variables })
  const wrong = ['DATABASE_URL: mysql://x', 'DATABASE_URL mysql://x', '= x', '- A=1', 'A B=1']
  // Node would take the next line for the value.
  const swallowing = ['C= ', 'C= \r', 'C= "x', "C='", 'C="x\nDATABASE_URL="mysql://x"']
  for (const line of [...wrong, ...swallowing]) {
    expect(() => parseDotenv(`${good}${line}\n`), line).toThrow(
      new UsageError('Line 8 of .env must be NAME=value'),
    )
  }
  // Node would cut the value at the sign: the service would begin another, empty database.
  for (const line of ['DATABASE_URL=sqlite:a#b.db', 'DATABASE_PASSWORD=#secret', 'A=b c#d # e']) {
    expect(() => parseDotenv(`${good}${line}\n`), line).toThrow(
      new UsageError('Line 8 of .env must be NAME=value, with quotes around a value that has a #'),
    )
  }
})

test.each([
  ...['\u00A0', '\u3000', '\uFEFF', '\v', '\f', '\u2028'].map((space) => ({
    character: space,
    lines: [
      `${space}A=1`,
      `A${space}=1`,
      `A=${space}1`,
      `A="1"${space}`,
      `export${space}A=1`,
      space,
    ],
  })),
  // Some editors end a line at these: what stands behind them would be a part of the comment, or of the value.
  ...['\r', '\v', '\f', '\u0085', '\u2028', '\u2029'].map((end) => ({
    character: end,
    lines: [`#${end}A=1`, `B=1${end}A=1`, `B=1 #${end}A=1`, `B="1" #${end}A=1`, `B=${end}A=1`],
  })),
])('a character of .env that is neither a space nor ends a line: $character', (row) => {
  const code = row.character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
  const message = `Line 2 of .env must be NAME=value, without the character U+${code}`
  for (const line of row.lines) {
    const text = `#\n${line}\n`
    expect(() => parseDotenv(text), JSON.stringify(line)).toThrow(new UsageError(message))
  }
})
