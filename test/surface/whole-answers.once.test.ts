/** Complete responses of each kind: status, all headers, body, the line in the log, and the metrics. */
import { afterAll, afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { MAX_BODY } from '../../src/config/product.ts'
import { tokenOf, visiblePrefix } from '../../src/keys/key.ts'
import { answerOf, everyHeader, expectTrpcError, pageHeaders } from '../support/expect.ts'
import { newMetrics } from '../support/metrics.ts'
import { allowAt, corsMethods } from '../support/operations.ts'
import { petOf, storePets } from '../support/pets.ts'
import { transformer } from '../support/router.ts'
import { keys, type Service, serviceForFile } from '../support/service.ts'
import { startUnreachable } from '../support/unreachable.ts'

const shop = 'https://shop.example'
const wrongKey = `petstore_${'k'.repeat(43)}`

const metrics = await newMetrics()
const service = await serviceForFile({
  ...metrics.variables,
  CORS_ORIGINS: `${shop}, capacitor://localhost`,
})
/** To pages of no other origin, and to those of any. */
const closed = await serviceForFile()
const forAll = await serviceForFile({ CORS_ORIGINS: `${shop}, *` })
const limited = await serviceForFile({ RATE_LIMIT: '3', CORS_ORIGINS: shop })
const unreachable = await startUnreachable()
afterAll(() => unreachable.stop())
const { key: readerKey } = await keys.create(service.databaseUrl, 'reader', undefined, true)
await storePets(service.sql, [
  { name: 'Rex', categoryId: 3n, status: 'sold' },
  { name: 'Zoë 😀', categoryId: 3n, status: 'available' },
])
/** Each row finds these two alone. */
beforeEach(async () => {
  await service.sql('delete from pets where id > 2')
  await service.sql("update sqlite_sequence set seq = 2 where name = 'pets' and seq > 2")
})

afterEach(() => expect(Object.keys(Object.prototype)).toEqual([]))

/** A caller with a key that may write, with a read-only one, with an invalid one, with a text that is none, without. */
type Caller = 'writer' | 'reader' | 'invalidKey' | 'noKey' | 'anonymous'
type Headers = Record<string, string>
/** The fields of a line in the log. */
type Line = Record<string, unknown>
const address = '127.0.0.1'
const callers: Record<Caller, Line> = {
  writer: { keyId: '1' },
  reader: { keyId: '2' },
  invalidKey: { address, keyPrefix: 'petstore_kkkkkk' },
  noKey: { address },
  anonymous: { address },
}
interface Sent {
  /** By default the writer; or the value of Authorization. */
  by?: Caller | { authorization: string }
  headers?: Headers
  body?: string | Uint8Array<ArrayBuffer>
  /** Without a length, in more pieces than the service keeps apart. */
  inPieces?: true
}
const json = { ...everyHeader, 'content-type': 'application/json' }
/** The headers of responses that pages of other origins may read. */
const exposed = {
  'access-control-expose-headers':
    'Link,Location,Deprecation,Sunset,RateLimit,RateLimit-Policy,Retry-After,WWW-Authenticate,X-Request-Id',
  vary: 'Origin',
}
/** The header of responses to a page of an allowed origin, which sends all requests without another. */
const readable = { 'access-control-allow-origin': shop }
const open = { ...json, ...exposed, ...readable }
/** Any page may read the document, whatever origins the operator allows. */
const anyPage = { 'access-control-allow-origin': '*' }
const rest = { ...open, 'cache-control': 'no-store' }
const trpc = { ...rest, vary: 'Origin, trpc-accept, accept' }
const page = { ...pageHeaders, ...exposed, ...readable }
const fresh = { 'cache-control': 'no-cache', vary: 'Origin, Accept-Encoding' }
const file = { ...page, ...fresh }
const deprecated = {
  deprecation: '@1795132800',
  link: '<https://petstore.example/v1/pets>; rel="successor-version"',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
}
/** fetch requests it with HEAD; other responses keep the connection open. */
const close = { connection: 'close' }
const kept = { connection: 'keep-alive', 'keep-alive': 'timeout=65' }
const challenge = (words = '') => ({ 'www-authenticate': `Bearer${words}` })

/** The status and tRPC's number of each error code. */
const codes = {
  PARSE_ERROR: [400, -32700],
  BAD_REQUEST: [400, -32600],
  UNAUTHORIZED: [401, -32001],
  FORBIDDEN: [403, -32003],
  NOT_FOUND: [404, -32004],
  METHOD_NOT_SUPPORTED: [405, -32005],
  PAYLOAD_TOO_LARGE: [413, -32013],
  UNSUPPORTED_MEDIA_TYPE: [415, -32015],
  UNPROCESSABLE_CONTENT: [422, -32022],
  TOO_MANY_REQUESTS: [429, -32029],
  INTERNAL_SERVER_ERROR: [500, -32603],
  SERVICE_UNAVAILABLE: [503, -32603],
} as const

interface Problem {
  code: keyof typeof codes
  message: string
  headers: Headers
  /** The errors of fields, on tRPC. */
  fields?: Headers
}
const problem = (code: Problem['code'], message: string, headers: Headers = {}): Problem => ({
  code,
  message,
  headers,
})
const bad = (message: string) => problem('BAD_REQUEST', message)
/** A rejected input: the message has all errors, by their fields. */
const rejected = (fields: Headers): Problem => {
  const errors = Object.entries(fields).map(([name, text]) => `${name || 'The input'} ${text}`)
  return { ...bad(errors.join('; ')), fields }
}
const wrongMethod = (method: string, methods: string) =>
  problem('METHOD_NOT_SUPPORTED', `${method} is not supported here: use ${methods}`, {
    allow: methods.replace(' or', ','),
  })
const getOnly = wrongMethod('POST', 'GET or HEAD')
const noProcedure = (name: string) =>
  problem('NOT_FOUND', `There is no procedure with the name ${name}`)

const missing = problem(
  'UNAUTHORIZED',
  'The API key is missing: send the header "Authorization: Bearer <API_KEY>"',
  challenge(),
)
const invalid = problem(
  'UNAUTHORIZED',
  'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service',
  challenge(' error="invalid_token"'),
)
const readOnly = problem(
  'FORBIDDEN',
  'The API key may only read: this call needs one that may write',
  challenge(' error="insufficient_scope"'),
)
const notUtf8 = problem('PARSE_ERROR', 'The request is not well-formed: its body must be UTF-8')
const malformed = problem('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read')
const plainInput = problem(
  'PARSE_ERROR',
  "The input must be encoded by the transformer of the service's client package",
)
const tooLarge = problem('PAYLOAD_TOO_LARGE', 'The body must have at most 65536 bytes')
const tooLong = problem(
  'PAYLOAD_TOO_LARGE',
  'The input must have at most 65536 characters and values',
)
const wrongType = problem(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must be of the type application/json, in UTF-8, and not compressed',
)
const usedKey = problem(
  'UNPROCESSABLE_CONTENT',
  'This Idempotency-Key was used for another request; take a new one',
)
const wrongKeyHeader = bad(
  'The header Idempotency-Key must be one string of 1 to 255 ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324", and not undefined, null, NaN or None',
)
const badUrl = bad('The URL of the request is not valid')
const notAnObject = bad('The body must be a JSON object')
const int64 = 'must be an integer from -9223372036854775808 to 9223372036854775807'
const nothing = problem('NOT_FOUND', 'There is nothing at this URL')
const mixedTypes = bad('A batch must be of queries or of mutations, not of both')
const noInputs = bad(
  'The input of a batch must be an object, with the inputs of its calls by their index',
)
const tooMany = bad('A batch must have at most 20 calls')
const noAnimal = problem('NOT_FOUND', 'There is no animal with the id 404')
const noBody = bad('The body is missing: it must be a JSON object')
const bug = problem('INTERNAL_SERVER_ERROR', 'Internal server error')
const unavailable = problem(
  'SERVICE_UNAVAILABLE',
  'The service cannot use its database right now; try again later',
  { 'retry-after': '5' },
)
const isStatus = 'must be one of available, pending, sold'
const mistakes = rejected({
  name: 'must not be empty',
  categoryId: 'is required',
  status: isStatus,
})
const noFields = rejected({ name: 'is required', categoryId: 'is required' })
const halfName = rejected({ name: 'must not contain an unpaired surrogate' })

/** The envelope of tRPC. */
const trpcError = ({ code, message, fields }: Problem) => ({
  error: {
    message,
    code: codes[code][1],
    data: { code, httpStatus: codes[code][0], ...(fields && { fields }) },
  },
})
const data = (output: unknown) => ({ result: { data: output } })

const rex = petOf(1n, { status: 'sold' })
const zoe = petOf(2n, { name: 'Zoë 😀' })
const plain = (pet: typeof rex) => ({ ...pet, id: Number(pet.id), categoryId: 3 })
const made = (id: bigint) => petOf(id, { name: 'Ada' })
const ada = '{"name":"Ada","categoryId":3}'
const trpcAda = JSON.stringify('[{"name":1,"categoryId":2},"Ada",3]')
const trpcMistakes = JSON.stringify('[{"name":1,"status":2},"","free"]')
const post = (body: NonNullable<Sent['body']>, headers: Headers = {}): Sent => ({
  body,
  headers: { 'content-type': 'application/json', ...headers },
})
const withKey = (body: string, key: string) => post(body, { 'idempotency-key': key })
const byReader = (body: string): Sent => ({ ...withKey(body, '"reader"'), by: 'reader' })
const input = (encoded: string) => `input=${JSON.stringify(encoded)}`
const sold = input('[{"status":1},"sold"]')
const preflight = (origin: string): Sent => ({
  by: 'anonymous',
  headers: { origin, 'access-control-request-method': 'POST' },
})

const nextPage = { link: '<https://petstore.example/v1/pets?limit=1&cursor=1>; rel="next"' }
const madeAt = { location: 'https://petstore.example/v1/pets/3' }
const toDocs = { ...page, location: 'docs/' }
const download = {
  ...anyPage,
  'content-type': 'application/json',
  'content-disposition': 'attachment; filename="openapi.json"',
}
/** The response to a preflight. */
const allowed = {
  ...everyHeader,
  ...exposed,
  ...readable,
  'access-control-allow-headers':
    'Authorization,Content-Type,Idempotency-Key,X-Request-Id,X-Requested-With,Cache-Control,Pragma,trpc-accept,x-trpc-source,traceparent,tracestate,baggage',
  'access-control-allow-methods': corsMethods.join(),
  'access-control-max-age': '600',
}
const { vary } = exposed
/** Those of a service without CORS, and those that pages of any origin may read. */
const secret = { ...json, 'cache-control': 'no-store' }
const shared = {
  ...secret,
  ...anyPage,
  'access-control-expose-headers': exposed['access-control-expose-headers'],
}
const bare = { all: secret }
const unreadable = ({ 'access-control-allow-origin': _, ...headers }: Headers) => headers
const text = { 'content-type': 'text/plain' }
const override = { 'x-http-method-override': 'POST', 'x-http-method': 'POST' }
const brackets = '['.repeat(15_000)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Values of Authorization without a valid key. */
function spellings(key: string): string[] {
  const inverted = key.replaceAll(/(?<=_.*)[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )
  return [
    ...['', 'Bearer', key, `Bearer${key}`, `Bearer\t${key}`, `Basic ${key}`, `Token Bearer ${key}`],
    ...[`Bearer "${key}"`, `Bearer ${key}, Bearer ${key}`, `Bearer ${key}A`],
    ...[key.slice(0, -1), key.toUpperCase(), inverted, wrongKey].map((other) => `Bearer ${other}`),
    ...[key.replace('_', '_read_'), readerKey.replace('read_', '')].map(
      (other) => `Bearer ${other}`,
    ),
    ...['Bearer abc.def~+/==', 'Bearer schlüssel'],
  ]
}
const lines = { 'trpc-accept': 'application/jsonl' }
const mixed = (...calls: [operation: string, status: number][]) => ({ status: 207, calls })

/** An error in the form of the surface, or the value of a body; undefined if it is not checked. */
type Outcome = Problem | { body: unknown }

/** A request and its response, as the log names it: `rest listPets`, `trpc batch`, or `other`. */
type Row = [
  logged: string,
  request: string,
  Sent,
  Outcome,
  /** Headers beside those of the surface and of the error. */
  headers?: Headers,
  more?: More,
]
interface More {
  status?: number
  /** The headers in place of those of the surface. */
  all?: Headers
  calls?: [operation: string, status: number][]
  /** The service that is asked, and what its log says of the caller. */
  on?: Service
  caller?: Line
  /** The lines in the log before those of the request. */
  errors?: Line[]
}
const ok = (body?: unknown) => ({ body })

function onRest(sent: Sent, outcome: Outcome = ok(plain(made(3n)))): Row {
  const row = ['rest createPet', 'POST /v1/pets', sent, outcome] as const
  return 'code' in outcome ? [...row] : [...row, madeAt, { status: 201 }]
}
function onTrpc(sent: Sent, outcome: Outcome = ok(data(made(3n)))): Row {
  return ['trpc createPet', 'POST /trpc/createPet', sent, outcome]
}
/** A creation on both surfaces, by what `sent` makes of its body. */
const creations = (sent: (body: string) => Sent, error?: Problem): Row[] => [
  onRest(sent(ada), error),
  onTrpc(sent(trpcAda), error),
]
function listOnRest(query: string, outcome: Outcome, sent: Sent = {}, more: More = {}): Row {
  return ['rest listPets', `GET /v1/pets?${query}`, sent, outcome, {}, more]
}
function listOnTrpc(query: string, outcome: Outcome, sent: Sent = {}, more: More = {}): Row {
  return ['trpc listPets', `GET /trpc/listPets?${query}`, sent, outcome, {}, more]
}
function getOnRest(id: string, outcome: Outcome, sent: Sent = {}, more: More = {}): Row {
  return ['rest getPet', `GET /v1/pets/${id}`, sent, outcome, deprecated, more]
}
/** A batch that is refused as a whole. */
function batch(names: string, error: Problem, sent: Sent = {}, inputs = ''): Row {
  return ['trpc batch', `GET /trpc/${names}?batch=1${inputs}`, sent, error]
}
function unknown(name: string): Row {
  return ['trpc unknown', `GET /trpc/${name}`, {}, noProcedure(decodeURIComponent(name))]
}
function other(request: string, outcome: Outcome, more: More = {}): Row {
  return ['other', request, {}, outcome, {}, more]
}
/** Lists by a valid key, or an error. */
const listsBy = (authorization: string, error?: Problem): Row[] => {
  const sent = { by: { authorization } }
  const more = error ? {} : { caller: callers.writer }
  return [
    listOnRest('status=sold', error ?? ok([plain(rex)]), sent, more),
    listOnTrpc(sold, error ?? ok(data([rex])), sent, more),
  ]
}
function noMethod(method: string, path: string): Problem {
  const ofRest = path === '/v1/openapi.json' ? 'GET, HEAD' : allowAt(path.slice('/v1'.length))
  const allow = path.startsWith('/trpc/') ? 'GET, HEAD, POST' : ofRest
  return wrongMethod(method, allow.replace(/, (?=[A-Z]+$)/, ' or '))
}
/** The methods that a path does not take. */
const noMethods = (path: string): Row[] =>
  ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']
    .map((method) => [method, noMethod(method, path)] as const)
    .filter(([method, error]) => !error.headers.allow?.includes(method))
    .map(([method, error]) => {
      const isOptions = method === 'OPTIONS' // no browser sends it without a preflight
      const request = `${method} ${path}`
      return ['other', request, {}, error, isOptions ? {} : { vary }, isOptions ? bare : {}]
    })
/** What a service without pets says to pages, with these headers. */
const pagesOf = (on: Service, all: Headers): Row[] => [
  listOnRest('', ok([]), {}, { on, all }),
  listOnTrpc('', ok(data([])), {}, { on, all: { ...all, vary: trpc.vary } }),
  other('GET /v1/nothing', nothing, { on, all }),
]

const mixedBatch = `GET /trpc/getPet,listPets,nothing,getPet?batch=1&input={"0":${JSON.stringify('[{"petId":1},1]')},"1":${JSON.stringify('[{"limit":1},0]')}}`
const mixedOutcome = [
  data(rex),
  ...[rejected({ limit: 'must be at least 1' }), noProcedure('nothing')].map(trpcError),
  trpcError(rejected({ '': 'must be an object' })),
]

const both = ok([plain(rex), plain(zoe)])
const rows: Row[] = [
  listOnRest('limit=2', both),
  listOnRest('status=sold&x=1&limit=1', ok([plain(rex)]), { by: 'reader' }),
  ['rest listPets', 'GET /v1/pets?limit=1&x=1', {}, ok([plain(rex)]), nextPage],
  getOnRest('2', ok(plain(zoe))),
  ['rest getPet', 'HEAD /v1/pets/2', {}, ok(''), { ...deprecated, ...close }],
  onRest(withKey(ada, 'a b'), wrongKeyHeader),
  onRest(post('{'), malformed),
  onRest(post('[]'), notAnObject),
  ...[{}, post(''), { ...post(''), inPieces: true } as const].map((sent) => onRest(sent, noBody)),
  onRest(post('{"name":"","status":"free"}'), mistakes),
  listOnRest('limit=0', bad('limit must be at least 1')),
  listOnRest('', missing, { by: 'anonymous' }),
  listOnRest('', invalid, { by: 'noKey' }),
  getOnRest('404', noAnimal),
  getOnRest('1', invalid, { by: 'invalidKey' }),
  ['other', 'GET /v1/openapi.json', {}, ok(), {}, { all: { ...open, ...anyPage, ...fresh } }],
  ['other', 'HEAD /v1/openapi.json', {}, ok(''), close, { all: { ...open, ...anyPage, ...fresh } }],

  listOnTrpc('input=[{"limit":1},1]', plainInput),
  listOnTrpc(sold, ok(data([rex])), { by: 'reader' }),
  ['trpc getPet', `HEAD /trpc/getPet?${input('[{"petId":1},2]')}`, {}, ok(''), close],
  onTrpc(post(trpcMistakes), mistakes),
  onTrpc(post(''), malformed),
  onTrpc(post('{}'), plainInput),
  onTrpc({}, malformed),
  [
    'trpc createPet',
    'POST /trpc/createPet?batch=1',
    post(`{"0":${trpcAda}}`),
    ok([data(made(3n))]),
  ],
  ['trpc getPet', `GET /trpc/getPet?${input('[{"petId":1},404]')}`, {}, noAnimal],
  listOnTrpc('', missing, { by: 'anonymous' }),
  listOnTrpc('', invalid, { by: 'invalidKey' }),
  listOnTrpc('batch=1', invalid, { by: 'invalidKey', headers: lines }),
  batch('listPets,nothing', invalid, { by: 'invalidKey' }),
  [
    'trpc',
    mixedBatch,
    {},
    ok(mixedOutcome),
    {},
    mixed(['getPet', 200], ['listPets', 400], ['unknown', 404], ['getPet', 400]),
  ],
  [
    'trpc',
    'GET /trpc/nothing,listPets,listPets?batch=1',
    {},
    ok([trpcError(noProcedure('nothing')), data([rex, zoe]), data([rex, zoe])]),
    {},
    mixed(['unknown', 404], ['listPets', 200], ['listPets', 200]),
  ],
  [
    'trpc',
    'GET /trpc/createPet,createPet?batch=1',
    {},
    ok(Array(2).fill(trpcError(wrongMethod('GET', 'POST')))),
    { allow: 'POST' }, // once
    { ...mixed(['createPet', 405], ['createPet', 405]), status: 405 },
  ],
  [
    'trpc',
    'GET /trpc/createPet,nothing?batch=1',
    {},
    ok([trpcError(wrongMethod('GET', 'POST')), trpcError(noProcedure('nothing'))]),
    { allow: 'POST' },
    mixed(['createPet', 405], ['unknown', 404]),
  ],
  ...[{}, { headers: lines }].flatMap((sent) => [
    batch('listPets,createPet', mixedTypes, sent),
    batch(`${Array(21).fill('listPets')}`, tooMany, sent),
    batch(Array(21).fill('listPets').join('%2c'), tooMany, sent),
    batch(`${Array(1_500).fill('listPets')}`, tooMany, sent),
  ]),
  [
    'trpc batch',
    'POST /trpc/createPet,createPet?batch=1',
    withKey(`{"0":${trpcAda}}`, '"batch"'),
    bad('The header Idempotency-Key goes with one call, not with a batch'),
  ],
  batch('listPets,listPets', noInputs, {}, '&input=[]'),
  ['trpc listPets', 'POST /trpc/listPets', post(trpcAda), wrongMethod('POST', 'GET')],
  ['trpc createPet', 'GET /trpc/createPet', { headers: override }, wrongMethod('GET', 'POST')],
  ...['%ff', '%zz'].map((name): Row => ['other', `GET /trpc/${name}`, {}, badUrl, { vary }]),
  ['trpc unknown', 'GET /trpc', {}, noProcedure('')],
  ...['x/y/listPets', '/listPets', 'listPets/', 'LISTPETS', '%2FlistPets'].map(unknown),
  ...['', '%00', '/[', '__proto__', 'constructor', 'toString', 'constructor.name', '_def'].map(
    unknown,
  ),
  // The log and the metrics name the procedure, also if its name was percent-encoded.
  ['trpc listPets', `GET /trpc/list%50ets?${input('[{"limit":1},1]')}`, {}, ok(data([rex]))],
  [
    'trpc unknown',
    'GET /trpc/nothing',
    { headers: { origin: 'https://other.example' } },
    noProcedure('nothing'),
    {},
    { all: { ...json, ...exposed, vary: trpc.vary, 'cache-control': 'no-store' } },
  ],

  ...[
    ...['/v1/nothing?a=b', '/v1/openapi-json', '/v1', '/nothing', '/trpcs/listPets', '/v1s/pets'],
    ...['/v1/', '/v1/PETS', '/v1/Pets', '/V1/pets', '/v1/pets/', '/v1/pets/1/', '/v1/pets/1/toys'],
    ...['/v1//pets', '/v1/pets//', '/v1/pet', '/v1/pets%2f1', '/v1/pets;v=1', '/v1/..%2fpets'],
    ...['/v1/openapi.json/', '/v1/OpenAPI.json', '/v1/openapi', '/docs/nothing', '/DOCS'],
    ...['/docs/docs.CSS', '/docs/..%2f..%2fpackage.json', '/docs/..%5c..%5cpackage.json'],
    ...['/docs/%00', '/docs/index.html%00'],
  ].map((path) => other(`GET ${path}`, nothing)),
  ...['POST', 'DELETE'].map((method) => other(`${method} /v1/pet`, nothing)),
  other('OPTIONS /v1/pet', nothing, bare),
  ...[
    ...['/v1/pets', '/v1/pets/1', '/v1/pets/rex', '/v1/openapi.json'],
    ...['/trpc/createPet', '/trpc/listPets'],
  ].flatMap(noMethods),
  other('GET /healthz', ok({ status: 'ok' })),
  ['other', 'HEAD /healthz', {}, ok(''), close],
  other('GET /readyz', ok({ status: 'ready' })),
  ...['/', '/docs', '/healthz', '/readyz'].map((path) => other(`POST ${path}`, getOnly)),
  ...['/', '/docs'].flatMap((path): Row[] => [
    other(`GET ${path}`, ok(''), { status: 302, all: toDocs }),
    ['other', `HEAD ${path}`, {}, ok(''), close, { status: 302, all: toDocs }],
  ]),
  ...Object.entries({
    '/docs/': 'text/html; charset=utf-8',
    '/docs/docs.css': 'text/css; charset=utf-8',
    '/docs/docs.js': 'text/javascript; charset=utf-8',
    '/docs/icon.svg': 'image/svg+xml',
  }).flatMap(([path, type]): Row[] => [
    ['other', `GET ${path}`, {}, ok(), { 'content-type': type }, { all: file }],
    ['other', `HEAD ${path}`, {}, ok(''), { ...close, 'content-type': type }, { all: file }],
    other(`POST ${path}`, getOnly),
    other(`GET ${path.toUpperCase()}`, nothing),
    other(`GET ${path}${path.endsWith('/') ? 'index.html' : '/'}`, nothing),
  ]),
  ['other', 'GET /docs/openapi.json', {}, ok(), download, { all: file }],

  ...creations(post),
  ...creations((body) => post(body.padEnd(MAX_BODY))),
  ...creations((body) => ({ ...post(body.padEnd(MAX_BODY)), inPieces: true })),
  ...creations((body) => post(body.padEnd(MAX_BODY + 1)), tooLarge),
  ...creations((body) => ({ body: Buffer.from(body) }), wrongType), // fetch adds no type
  ...creations(() => ({ headers: text }), wrongType),
  ...['', '{', ada].flatMap((body) => creations(() => byReader(body), readOnly)),
  ...creations((body) => ({ ...byReader(body), headers: text }), readOnly), // before its body
  ...['identity', 'Identity', ''].flatMap((encoding) =>
    creations((body) => post(body, { 'content-encoding': encoding })),
  ),
  ...['gzip', 'zstd', 'identity, identity'].flatMap((encoding) =>
    creations((body) => post(body, { 'content-encoding': encoding }), wrongType),
  ),
  ...[
    'Application/JSON; Charset="UTF-8"',
    'application/json ; x=y',
    'application/json; odd',
    'application/json; charset=UTF8',
    'application/json; charset=unicode-1-1-utf-8',
  ].flatMap((type) => creations((body) => post(body, { 'content-type': type }))),
  ...[
    'text/plain',
    'application/jsonl',
    'application/json; charset="latin1"',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json, text/plain',
    'application/json; a="b,c"; charset=latin1',
    'multipart/form-data; boundary=x',
  ].flatMap((type) => creations((body) => post(body, { 'content-type': type }), wrongType)),
  ...['{"\xff"}', '{"name":"\xed\xa0\x80","categoryId":1}'] // the latter is a surrogate
    .flatMap((text) => creations(() => post(Buffer.from(text, 'latin1')), notUtf8)),
  ...[
    '\ufeff\ufeff{"name":"a","categoryId":1}',
    '{"name":"a\u0000b","categoryId":1}',
    '{"name":"a","categoryId":NaN}',
    '{"name":"a","categoryId":01}',
    '{"name":"a","categoryId":1}{}',
    ' ',
  ].flatMap((text) => creations(() => post(text), malformed)),
  onRest(post(`{"name":"Ada","categoryId":3,"b":${brackets + ']'.repeat(15_000)}}`)),
  onRest(
    post('\ufeff{"name":"\\ud83d\\udc36","categoryId":3}'),
    ok({ ...plain(made(3n)), name: '🐶' }),
  ),
  ...['\\ud83d', '\\udc36\\ud83d'].flatMap((half) => [
    onRest(post(`{"name":"${half}","categoryId":3}`), halfName),
    onTrpc(post(JSON.stringify(`[{"name":1,"categoryId":2},"${half}",3]`)), halfName),
  ]),
  onRest(post('{"__proto__":{"name":"Rex","categoryId":3}}'), noFields),
  onRest(
    post(
      '{"name":1,"name":"Ada","categoryId":3,"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}}',
    ),
  ),
  onRest(post('{"name":"Ada","categoryId":3,"status":"toString"}'), rejected({ status: isStatus })),
  ...(
    [
      ['[["Secret",1]]', malformed],
      ['[{"__proto__":1},{"name":2},"Rex"]', malformed],
      ['[["Float64Array",4294967295]]', malformed],
      ['[["Object",0]]', malformed],
      ['[[7]]', malformed],
      ['[["Date","never"]]', noFields],
      // A sparse array, a boxed string, and more digits than an int64 has.
      ['[{"name":1,"categoryId":2},[-7,4294967295],3]', rejected({ name: 'must be a string' })],
      [
        '[{"name":1,"categoryId":2},["Object",3],4,"Rex",1]',
        rejected({ name: 'must be a string' }),
      ],
      [
        `[{"name":1,"categoryId":2},"Rex",["BigInt","${'9'.repeat(60_000)}"]]`,
        rejected({ categoryId: int64 }),
      ],
      // Cycles, and doubling references.
      ['[[0]]', tooLong],
      ['[{"name":0,"categoryId":0}]', tooLong],
      [`[{"name":1,"categoryId":1},${numbers(40).map((n) => `[${n + 1},${n + 1}]`)},1]`, tooLong],
    ] as const
  ).map(([text, error]) => onTrpc(post(JSON.stringify(text)), error)),
  onTrpc(
    post(
      JSON.stringify(
        `[{"name":1,"categoryId":2,"more":4},"Ada",3,0,${numbers(500).map((n) => `[${n + 4}]`)},[]]`,
      ),
    ),
  ),

  ...['Bearer ', 'bearer ', 'BEARER ', 'Bearer  '].flatMap((scheme) =>
    listsBy(scheme + service.key),
  ),
  ...spellings(service.key).flatMap((authorization) => listsBy(authorization, invalid)),
  ['rest createPet', 'POST /v1/pets', { ...post('{'), by: 'anonymous' }, missing],
  getOnRest('none', invalid, { by: 'noKey' }),
  // A key is accepted in the header Authorization alone.
  ...[
    `connectionParams=${encodeURIComponent(JSON.stringify({ authorization: `Bearer ${service.key}` }))}`,
    `key=${service.key}`,
  ].map((query) => listOnTrpc(query, invalid, { by: 'noKey' })),
  listOnTrpc('', invalid, {
    by: 'noKey',
    headers: { cookie: `authorization=Bearer ${service.key}` },
  }),
  ...['createPet', 'nothing', 'listPets'].flatMap((first) =>
    [{}, lines].map((headers): Row => {
      const sent = { ...post(`{"0":${trpcAda},"1":${trpcAda}}`, headers), by: 'reader' } as const
      return ['trpc batch', `POST /trpc/${first},createPet?batch=1`, sent, readOnly]
    }),
  ),

  listOnRest(`${'x&'.repeat(1_000)}limit=0`, bad('limit must be at least 1')),
  listOnRest('limit=1&limit=2', bad('limit must be an integer from 1 to 100')),
  listOnRest('status=%zz', bad(`status ${isStatus}`)),
  listOnRest('cursor=1%00', bad(`cursor ${int64}`)),
  listOnRest(`cursor=${brackets}`, bad(`cursor ${int64}`)),
  ...['', '&&', '=', 'limit%00=0', '%ZZ=1', 'Limit=0', '_method=POST'].map((query) =>
    listOnRest(query, both, { headers: override }),
  ),
  listOnRest('__proto__=1&constructor=2&__proto__[limit]=0', both),
  [
    'rest createPet',
    'POST /v1/pets?name=Rex&status=sold&limit=0',
    post(ada),
    ok(plain(made(3n))),
    madeAt,
    { status: 201 },
  ],
  ...['%00', '1%00'].map((id) => getOnRest(id, bad(`petId ${int64}`))),
  ...['%ff', '%zz', '%', '%c0%af'].map((id) =>
    getOnRest(id, bad('petId must be percent-encoded UTF-8')),
  ),
  listOnTrpc(`${'x&'.repeat(1_000)}input=x`, malformed),
  ...['%zz', `"${brackets}"`, '', '"[{}]"&input="[{}]"'].map((text) =>
    listOnTrpc(`input=${text}`, malformed),
  ),
  listOnTrpc(`batch=1&input={"0":${brackets}`, malformed),
  // Node's parser makes a list of them, whose text would be the JSON of two inputs.
  batch('listPets,listPets', malformed, {}, '&input={"0":"[{}]"&input="1":"[{}]"}'),
  // A repeated `batch` is none, so this is the name of one procedure.
  [
    'trpc unknown',
    'GET /trpc/listPets,listPets?batch=1&batch=1',
    {},
    noProcedure('listPets,listPets'),
  ],

  ...['/v1/pets', '/v1/pets/1', '/trpc/createPet', '/trpc/listPets?batch=1'].flatMap((path) =>
    [shop, 'capacitor://localhost'].map(
      (origin): Row => [
        'other',
        `OPTIONS ${path}`,
        preflight(origin),
        ok(''),
        { 'access-control-allow-origin': origin },
        { status: 204, all: allowed },
      ],
    ),
  ),
  // A cache must not return a response without the header to an allowed origin.
  ...[`${shop}.evil.example`, 'http://shop.example', 'null', `${shop}:444`, '*'].flatMap(
    (origin): Row[] => [
      getOnRest('1', ok(plain(rex)), { headers: { origin } }, { all: unreadable(rest) }),
      [
        'other',
        'OPTIONS /v1/pets',
        preflight(origin),
        ok(''),
        {},
        { status: 204, all: unreadable(allowed) },
      ],
    ],
  ),
  ...pagesOf(closed, secret),
  ...pagesOf(forAll, shared),
  [
    'other',
    'OPTIONS /v1/pets',
    preflight(shop),
    noMethod('OPTIONS', '/v1/pets'),
    {},
    { on: closed, all: secret },
  ],
]

let serial = 0

/** A response without the headers that differ each time; those are checked here. */
async function ask(
  request: string,
  { by = 'writer', body, inPieces, headers }: Sent,
  { origin, key }: Service,
) {
  const [method = '', target = ''] = request.split(/ (.*)/s)
  const id = `whole-${++serial}`
  const keyOf = { writer: key, reader: readerKey, invalidKey: wrongKey, noKey: 'sesame' }
  const authorization =
    typeof by === 'object' ? by.authorization : by !== 'anonymous' && `Bearer ${keyOf[by]}`
  const answer = await fetch(origin + target, {
    method,
    redirect: 'manual',
    ...(body !== undefined && { body: inPieces ? ReadableStream.from(piecesOf(body)) : body }),
    duplex: 'half',
    headers: {
      ...(authorization !== false && { authorization }),
      'accept-encoding': 'identity',
      'x-request-id': id,
      origin: shop,
      ...headers,
    },
  })
  const text = await answer.text()
  const { date = '', etag, ...all } = Object.fromEntries(answer.headers)
  const { 'content-length': length, 'x-request-id': answered, ...others } = all
  expect(Math.abs(Date.now() - Date.parse(date))).toBeLessThan(60_000)
  expect(answered).toBe(id)
  if (others['cache-control'] === 'no-cache') expect(etag).toMatch(/^"[\w-]{43}"$/)
  else expect(etag).toBe(undefined)
  if (method === 'HEAD') expect(Number(length) > 10).toBe(answer.status === 200)
  else expect(Number(length)).toBe(Buffer.byteLength(text))
  return { id, status: answer.status, headers: others, body: read(text) }
}

/** A body in 300 packets. */
async function* piecesOf(body: NonNullable<Sent['body']>) {
  const bytes = Buffer.from(body as string)
  const size = Math.ceil(bytes.length / 300)
  for (let at = 0; at < bytes.length; at += size) {
    yield bytes.subarray(at, at + size)
    await new Promise(setImmediate)
  }
}

/** The value of a JSON body, with the values that tRPC has encoded in it. */
function read(text: string): unknown {
  if (!/^[[{]/.test(text)) return text
  const decode = (encoded: string) => transformer.deserialize(encoded)
  return JSON.parse(text, (name, value) => {
    if (name === 'error' && typeof value === 'string') return decode(value)
    return name === 'data' && typeof value === 'string' ? decode(value) : value
  })
}

/** The lines of a request in the log, without the fields that differ each time. */
async function linesOf(id: string, count: number, { logged }: Service): Promise<Line[]> {
  const find = () =>
    logged.filter((line) => line.includes(`"${id}"`)).map((line) => JSON.parse(line))
  await expect.poll(() => find().length).toBeGreaterThanOrEqual(count)
  return find().map(({ time, pid, hostname, requestId: _, duration, ...line }) => {
    expect(Math.abs(Date.now() - time)).toBeLessThan(60_000)
    expect([pid, typeof hostname]).toEqual([process.pid, 'string'])
    if (line.msg !== 'request') return line
    expect(duration).toBe(Math.round(Math.abs(duration) * 10) / 10)
    expect(duration).toBeLessThan(30_000)
    return line
  })
}

/** Compares a complete response and its lines in the log. */
async function expectWhole([
  logged,
  request,
  sent,
  outcome,
  headers,
  more = {},
]: Row): Promise<void> {
  const { all, calls, on = service, errors = [], ...expected } = more
  const [method = '', target = ''] = request.split(' ')
  const { id, ...answer } = await ask(request, sent, on)
  const isTrpc = /^\/trpc(?!s)/.test(target)
  const error = 'code' in outcome ? outcome : undefined
  const status = error ? codes[error.code][0] : (expected.status ?? 200)
  const onRest = error && { code: error.code, message: error.message, status }
  const usual = all ?? (isTrpc ? trpc : rest)
  const [surface = '', operation] = logged.split(' ')
  const caller = expected.caller ?? callerOf(sent)
  const path = target.replace(/\?.*/, '').replace(/%.*/, '%…')
  const ofCall = ([operation, status]: [string | undefined, number]): Line => {
    const who = operation === undefined ? { path, address } : { operation, ...caller }
    return { level: 'info', msg: 'request', surface, method, status, ...who }
  }
  const lines = (calls ?? [[operation, status] as [string | undefined, number]]).map(ofCall)
  // Health that is as it was has no line, nor what the docs page loads.
  const isSilent = status === 200 && /^\/(healthz|readyz|docs\/\w+\.(css|js|svg))$/.test(target)
  const inLog = [...errors, ...(isSilent ? [] : lines)]
  const found = await linesOf(id, inLog.length, on)
  const requests = isSilent ? lines : found.filter(({ msg }) => msg === 'request')
  if (on === service) count(requests, answer.status)
  expect(answer).toEqual({
    status,
    headers: { ...usual, ...(method === 'HEAD' ? close : kept), ...error?.headers, ...headers },
    body: error ? (isTrpc ? trpcError(error) : onRest) : (bodyOf(outcome) ?? answer.body),
  })
  expect(found).toEqual(inLog)
}

/** The calls and the requests so far, by the labels of the metrics: a row that fails changes nothing for the others. */
const counted: Record<string, number> = {}
function count(requests: Line[], status: number): void {
  const add = (metric: string, { surface, operation = 'none', status }: Line) => {
    const name = `${metric}{surface="${surface}",operation="${operation}",status="${status}"}`
    counted[name] = (counted[name] ?? 0) + 1
  }
  for (const request of requests) add('requests_total', request)
  const [first, second] = requests
  const batch = second && { operation: 'batch' }
  add('request_duration_seconds_count', { ...first, ...batch, status })
}

/** What the log says of a caller. */
function callerOf({ by = 'writer' }: Sent): Line {
  if (typeof by === 'string') return callers[by]
  const keyPrefix = visiblePrefix(tokenOf(by.authorization) ?? '')
  return { address, ...(keyPrefix && { keyPrefix }) }
}

const bodyOf = (outcome: object) => (outcome as { body?: unknown }).body

test.each(rows.map((row, index) => [`${index}: ${row[1].slice(0, 60)}`, row] as const))(
  '%s',
  (_, row) => expectWhole(row),
)

test('a creation with an Idempotency-Key, and 422', async () => {
  await expectWhole(onRest(withKey(ada, '"whole"')))
  await expectWhole(onRest(withKey('{"name":"Bea","categoryId":3}', '"whole"'), usedKey))
})

test('500', async () => {
  await service.sql('alter table pets rename to animals')
  onTestFinished(async () => void (await service.sql('alter table animals rename to pets')))
  const errorOf = (operation: string) => ({
    level: 'error',
    operation,
    msg: bug.message,
    err: expect.objectContaining({
      type: expect.stringMatching(/Error$/),
      message: expect.stringMatching(/./),
      stack: expect.stringMatching(/\n +at /),
    }),
  })
  const get = { errors: [errorOf('getPet')] }
  await expectWhole(['rest getPet', 'GET /v1/pets/1', {}, bug, deprecated, get])
  const creation = { errors: [errorOf('createPet')] }
  await expectWhole([...onTrpc(post(trpcAda), bug), {}, creation] as unknown as Row)
  const bugs = ok([trpcError(bug), trpcError(bug)])
  const calls = { ...mixed(['listPets', 500], ['listPets', 500]), status: 500 }
  const errors = [errorOf('listPets'), errorOf('listPets')]
  const pair = 'GET /trpc/listPets,listPets?batch=1'
  await expectWhole(['trpc', pair, {}, bugs, {}, { ...calls, errors }])
})

test('503', async () => {
  // The key was never looked up, so the log has its prefix instead of its id. A file that is no database
  // is logged once, not for each request.
  const caller = { address, keyPrefix: unreachable.key.slice(0, 15) }
  const asked = { on: unreachable, caller, all: secret }
  await expectWhole(['rest listPets', 'GET /v1/pets', {}, unavailable, {}, asked])
  const { vary } = trpc
  await expectWhole(['trpc listPets', 'GET /trpc/listPets', {}, unavailable, { vary }, asked])
})

test('the RateLimit headers, and 429', async () => {
  const quota = (left: number) => ({
    ratelimit: expect.stringMatching(new RegExp(`^"3-in-1min"; r=${left}; t=(60|[1-5]?\\d)$`)),
    'ratelimit-policy': '"3-in-1min"; q=3; w=60',
  })
  const message = expect.stringMatching(
    /^There were more than 3 calls in a minute; try again in \d+ seconds$/,
  )
  const many = problem('TOO_MANY_REQUESTS', message, {
    ...quota(0),
    'retry-after': expect.stringMatching(/^(60|[1-5]?\d)$/),
  })
  const on = limited
  await expectWhole(['rest listPets', 'GET /v1/pets', {}, ok([]), quota(2), { on }])
  const answers = ok([data([]), trpcError(noProcedure('nothing'))])
  const calls = mixed(['listPets', 200], ['unknown', 404])
  const pair = 'GET /trpc/listPets,nothing?batch=1'
  await expectWhole(['trpc', pair, {}, answers, quota(0), { ...calls, on }])
  await expectWhole(['rest getPet', 'GET /v1/pets/1', {}, many, deprecated, { on }])
  await expectWhole(['trpc listPets', 'GET /trpc/listPets', {}, many, {}, { on }])
})

test('the metrics count each of these calls once, and have one duration for each request', async () => {
  const pattern = /^petstore_((?:requests_total|request_duration_seconds_count)\{.*\}) (\d+)$/gm
  const found = (await metrics.text()).matchAll(pattern)
  expect(Object.fromEntries([...found].map(([, name, value]) => [name, Number(value)]))).toEqual(
    counted,
  )
})

test('an input of tRPC that is nested 6,000 deep is 400', async () => {
  const body = JSON.stringify(`[${numbers(6_000).map((next) => `[${next}]`)},1]`)
  const refused = await answerOf(service.fetch('/trpc/createPet', { method: 'POST', body }))
  // The code depends on the stack that compiled code takes: the input overflows it, or is no pet.
  const code = refused.body.includes('PARSE_ERROR') ? 'PARSE_ERROR' : 'BAD_REQUEST'
  expectTrpcError(refused, 400, code)
})
