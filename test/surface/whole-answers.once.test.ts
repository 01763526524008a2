/** Complete responses of each kind: status, all headers, body, and the line in the log. */
import { afterAll, expect, test } from 'vitest'
import { everyHeader, pageHeaders } from '../support/expect.ts'
import { newMetrics } from '../support/metrics.ts'
import { corsMethods } from '../support/operations.ts'
import { petOf, storePets } from '../support/pets.ts'
import { transformer } from '../support/router.ts'
import { keys, type Service, serviceForFile } from '../support/service.ts'
import { startUnreachable } from '../support/unreachable.ts'

const shop = 'https://shop.example'
const wrongKey = `petstore_${'k'.repeat(43)}`

const metrics = await newMetrics()
const service = await serviceForFile({ ...metrics.variables, CORS_ORIGINS: shop })
const limited = await serviceForFile({ RATE_LIMIT: '3', CORS_ORIGINS: shop })
const unreachable = await startUnreachable()
afterAll(() => unreachable.stop())
const { key: readerKey } = await keys.create(service.databaseUrl, 'reader', undefined, true)
await storePets(service.sql, [
  { name: 'Rex', categoryId: 3n, status: 'sold' },
  { name: 'Zoë 😀', categoryId: 3n, status: 'available' },
])

/** A caller with a key that may write, with a read-only one, with an invalid one, with a text that is none, without. */
type Caller = 'writer' | 'reader' | 'invalidKey' | 'noKey' | 'anonymous'
type Headers = Record<string, string>
interface Sent {
  /** By default the writer. */
  by?: Caller
  headers?: Headers
  body?: string
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
const malformed = problem('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read')
const plainInput = problem(
  'PARSE_ERROR',
  "The input must be encoded by the transformer of the service's client package",
)
const tooLarge = problem('PAYLOAD_TOO_LARGE', 'The body must have at most 65536 bytes')
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
const nothing = problem('NOT_FOUND', 'There is nothing at this URL')
const noAnimal = problem('NOT_FOUND', 'There is no animal with the id 404')
const noBody = bad('The body is missing: it must be a JSON object')
const bug = problem('INTERNAL_SERVER_ERROR', 'Internal server error')
const unavailable = problem(
  'SERVICE_UNAVAILABLE',
  'The service cannot use its database right now; try again later',
  { 'retry-after': '5' },
)
const mistakes = rejected({
  name: 'must not be empty',
  categoryId: 'is required',
  status: 'must be one of available, pending, sold',
})

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
const large = ' '.repeat(65_537)
const post = (body: string, headers: Headers = {}): Sent => ({
  body,
  headers: { 'content-type': 'application/json', ...headers },
})
const withKey = (body: string, key: string) => post(body, { 'idempotency-key': key })
const byReader = (body: string): Sent => ({ ...post(body), by: 'reader' })
const asText = (body: string) => post(body, { 'content-type': 'text/plain' })
const input = (encoded: string) => `input=${JSON.stringify(encoded)}`
const preflight: Sent = {
  by: 'anonymous',
  headers: { origin: shop, 'access-control-request-method': 'POST' },
}

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
const lines = { 'trpc-accept': 'application/jsonl' }
const mixed = (...calls: [operation: string, status: number][]) => ({ status: 207, calls })

/** A request and its response, as the log names it: `rest listPets`, `trpc batch`, or `other`. */
type Row = [
  logged: string,
  request: string,
  Sent,
  /** An error in the form of the surface, or the value of a body; undefined if it is not checked. */
  outcome: Problem | { body: unknown },
  /** Headers beside those of the surface and of the error. */
  headers?: Headers,
  more?: { status?: number; all?: Headers; calls?: [operation: string, status: number][] },
]
const ok = (body?: unknown) => ({ body })

const mixedBatch = `GET /trpc/getPet,listPets,nothing,getPet?batch=1&input={"0":${JSON.stringify('[{"petId":1},1]')},"1":${JSON.stringify('[{"limit":1},0]')}}`
const mixedOutcome = [
  data(rex),
  ...[rejected({ limit: 'must be at least 1' }), noProcedure('nothing')].map(trpcError),
  trpcError(rejected({ '': 'must be an object' })),
]

// The order matters: later requests read the pets that earlier ones create.
const rows: Row[] = [
  ['rest listPets', 'GET /v1/pets?limit=2', {}, ok([plain(rex), plain(zoe)])],
  ['rest listPets', 'GET /v1/pets?status=sold&x=1&limit=1', { by: 'reader' }, ok([plain(rex)])],
  ['rest listPets', 'GET /v1/pets?limit=1&x=1', {}, ok([plain(rex)]), nextPage],
  ['rest getPet', 'GET /v1/pets/2', {}, ok(plain(zoe)), deprecated],
  ['rest getPet', 'HEAD /v1/pets/2', {}, ok(''), { ...deprecated, ...close }],
  [
    'rest createPet',
    'POST /v1/pets',
    withKey(ada, '"whole"'),
    ok(plain(made(3n))),
    madeAt,
    { status: 201 },
  ],
  ['rest createPet', 'POST /v1/pets', withKey('{"name":"Bea","categoryId":3}', '"whole"'), usedKey],
  ['rest createPet', 'POST /v1/pets', withKey(ada, 'a b'), wrongKeyHeader],
  ['rest createPet', 'POST /v1/pets', post('{'), malformed],
  ['rest createPet', 'POST /v1/pets', post('[]'), bad('The body must be a JSON object')],
  ['rest createPet', 'POST /v1/pets', post(''), noBody],
  ['rest createPet', 'POST /v1/pets', {}, noBody],
  ['rest createPet', 'POST /v1/pets', post('{"name":"","status":"free"}'), mistakes],
  ['rest createPet', 'POST /v1/pets', post(large), tooLarge],
  ['rest createPet', 'POST /v1/pets', asText(ada), wrongType],
  ['rest createPet', 'POST /v1/pets', byReader(ada), readOnly],
  ['rest listPets', 'GET /v1/pets?limit=0', {}, bad('limit must be at least 1')],
  ['rest listPets', 'GET /v1/pets', { by: 'anonymous' }, missing],
  ['rest listPets', 'GET /v1/pets', { by: 'noKey' }, invalid],
  ['rest getPet', 'GET /v1/pets/404', {}, noAnimal, deprecated],
  ['rest getPet', 'GET /v1/pets/1', { by: 'invalidKey' }, invalid, deprecated],
  ['rest getPet', 'GET /v1/pets/%ff', {}, bad('petId must be percent-encoded UTF-8'), deprecated],
  ['other', 'DELETE /v1/pets', {}, wrongMethod('DELETE', 'GET, HEAD or POST')],
  ['other', 'GET /v1/openapi.json', {}, ok(), {}, { all: { ...open, ...anyPage, ...fresh } }],
  ['other', 'HEAD /v1/openapi.json', {}, ok(''), close, { all: { ...open, ...anyPage, ...fresh } }],

  ['trpc listPets', 'GET /trpc/listPets?input=[{"limit":1},1]', {}, plainInput],
  ['trpc listPets', `GET /trpc/listPets?${input('[{"status":1},"sold"]')}`, {}, ok(data([rex]))],
  ['trpc getPet', `HEAD /trpc/getPet?${input('[{"petId":1},2]')}`, {}, ok(''), close],
  ['trpc createPet', 'POST /trpc/createPet', post(trpcAda), ok(data(made(4n)))],
  ['trpc createPet', 'POST /trpc/createPet', post(trpcMistakes), mistakes],
  ['trpc createPet', 'POST /trpc/createPet', post(''), malformed],
  ['trpc createPet', 'POST /trpc/createPet', post('{}'), plainInput],
  ['trpc createPet', 'POST /trpc/createPet', post(large), tooLarge],
  ['trpc createPet', 'POST /trpc/createPet', asText(trpcAda), wrongType],
  ['trpc createPet', 'POST /trpc/createPet', {}, malformed],
  ['trpc createPet', 'POST /trpc/createPet', byReader(trpcAda), readOnly],
  [
    'trpc createPet',
    'POST /trpc/createPet?batch=1',
    post(`{"0":${trpcAda}}`),
    ok([data(made(5n))]),
  ],
  ['trpc getPet', `GET /trpc/getPet?${input('[{"petId":1},404]')}`, {}, noAnimal],
  ['trpc listPets', 'GET /trpc/listPets', { by: 'anonymous' }, missing],
  ['trpc listPets', 'GET /trpc/listPets', { by: 'invalidKey' }, invalid],
  ['trpc batch', 'GET /trpc/listPets,nothing?batch=1', { by: 'invalidKey' }, invalid],
  ['trpc listPets', 'GET /trpc/listPets?batch=1', { by: 'invalidKey', headers: lines }, invalid],
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
    'GET /trpc/createPet,nothing?batch=1',
    {},
    ok([trpcError(wrongMethod('GET', 'POST')), trpcError(noProcedure('nothing'))]),
    { allow: 'POST' },
    mixed(['createPet', 405], ['unknown', 404]),
  ],
  [
    'trpc batch',
    'GET /trpc/listPets,createPet?batch=1',
    {},
    bad('A batch must be of queries or of mutations, not of both'),
  ],
  [
    'trpc batch',
    'POST /trpc/createPet,createPet?batch=1',
    withKey(`{"0":${trpcAda}}`, '"batch"'),
    bad('The header Idempotency-Key goes with one call, not with a batch'),
  ],
  [
    'trpc batch',
    `GET /trpc/${Array(21).fill('listPets')}?batch=1`,
    {},
    bad('A batch must have at most 20 calls'),
  ],
  [
    'trpc batch',
    'GET /trpc/listPets,listPets?batch=1&input=[]',
    {},
    bad('The input of a batch must be an object, with the inputs of its calls by their index'),
  ],
  ['trpc listPets', 'POST /trpc/listPets', post(trpcAda), wrongMethod('POST', 'GET')],
  ['trpc createPet', 'GET /trpc/createPet', {}, wrongMethod('GET', 'POST')],
  ['other', 'PUT /trpc/createPet', {}, wrongMethod('PUT', 'GET, HEAD or POST'), { vary }],
  ['other', 'GET /trpc/%ff', {}, bad('The URL of the request is not valid'), { vary }],
  ['trpc unknown', 'GET /trpc', {}, noProcedure('')],
  ...['x/y/listPets', '/listPets', 'listPets/', 'LISTPETS', '%2FlistPets'].map(
    (name): Row => ['trpc unknown', `GET /trpc/${name}`, {}, noProcedure(decodeURIComponent(name))],
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
    ...['/docs/nothing', '/DOCS', '/docs/docs.CSS'],
  ].map((path): Row => ['other', `GET ${path}`, {}, nothing]),
  ['other', 'GET /healthz', {}, ok({ status: 'ok' })],
  ['other', 'HEAD /healthz', {}, ok(''), close],
  ['other', 'GET /readyz', {}, ok({ status: 'ready' })],
  ...['/', '/docs', '/healthz', '/readyz', '/v1/openapi.json'].map(
    (path): Row => ['other', `POST ${path}`, {}, wrongMethod('POST', 'GET or HEAD')],
  ),
  ...['/', '/docs'].flatMap((path): Row[] => [
    ['other', `GET ${path}`, {}, ok(''), {}, { status: 302, all: toDocs }],
    ['other', `HEAD ${path}`, {}, ok(''), close, { status: 302, all: toDocs }],
  ]),
  ['other', 'GET /docs/', {}, ok(), { 'content-type': 'text/html; charset=utf-8' }, { all: file }],
  ['other', 'GET /docs/openapi.json', {}, ok(), download, { all: file }],
  ['other', 'OPTIONS /v1/pets', preflight, ok(''), {}, { status: 204, all: allowed }],
]

let serial = 0

/** A response without the headers that differ each time; those are checked here. */
async function ask(request: string, sent: Sent, { origin, key }: Service) {
  const [method = '', target = ''] = request.split(/ (.*)/s)
  const id = `whole-${++serial}`
  const keyOf = { writer: key, reader: readerKey, invalidKey: wrongKey, noKey: 'sesame' }
  const { by = 'writer', body } = sent
  const answer = await fetch(origin + target, {
    method,
    redirect: 'manual',
    ...(body !== undefined && { body }),
    headers: {
      ...(by !== 'anonymous' && { authorization: `Bearer ${keyOf[by]}` }),
      'accept-encoding': 'identity',
      'x-request-id': id,
      origin: shop,
      ...sent.headers,
    },
  })
  const text = await answer.text()
  const { date = '', etag, ...all } = Object.fromEntries(answer.headers)
  const { 'content-length': length, 'x-request-id': answered, ...headers } = all
  expect(Math.abs(Date.now() - Date.parse(date))).toBeLessThan(60_000)
  expect(answered).toBe(id)
  expect(etag !== undefined, 'an etag').toBe(headers['cache-control'] === 'no-cache')
  if (method === 'HEAD') expect(Number(length) > 10).toBe(answer.status === 200)
  else expect(Number(length)).toBe(Buffer.byteLength(text))
  return { id, status: answer.status, headers, body: read(text) }
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

/** The lines of a request in the log, without the fields that differ each time. */
async function linesOf(id: string, count: number, { logged }: Service): Promise<Line[]> {
  const find = () => logged.map((line) => JSON.parse(line)).filter((line) => line.requestId === id)
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

interface Circumstances {
  /** The service that is asked. */
  service?: Service
  /** The headers of the surface. */
  usual?: Headers
  /** The lines in the log before those of the request. */
  errors?: Line[]
  /** What the log says of the caller. */
  caller?: Line
}

/** Compares a complete response and its lines in the log. */
async function expectWhole(
  [logged, request, sent, outcome, headers, { all, calls, ...more } = {}]: Row,
  circumstances: Circumstances = {},
): Promise<void> {
  const [method = '', target = ''] = request.split(' ')
  const asked = circumstances.service ?? service
  const { id, ...answer } = await ask(request, sent, asked)
  const isTrpc = /^\/trpc(?!s)/.test(target)
  const usual = { ...(all ?? circumstances.usual ?? (isTrpc ? trpc : rest)) }
  const error = 'code' in outcome ? outcome : undefined
  const status = error ? codes[error.code][0] : (more.status ?? 200)
  const onRest = error && { code: error.code, message: error.message, status }
  expect(answer).toEqual({
    status,
    headers: { ...usual, ...(method === 'HEAD' ? close : kept), ...error?.headers, ...headers },
    body: error ? (isTrpc ? trpcError(error) : onRest) : (bodyOf(outcome) ?? answer.body),
  })

  const [surface = '', operation] = logged.split(' ')
  const caller = circumstances.caller ?? callers[sent.by ?? 'writer']
  const path = target.replace(/\?.*/, '').replace(/%.*/, '%…')
  const ofCall = ([operation, status]: [string | undefined, number]): Line => {
    const who = operation === undefined ? { path, address } : { operation, ...caller }
    return { level: 'info', msg: 'request', surface, method, status, ...who }
  }
  const lines = (calls ?? [[operation, status] as [string | undefined, number]]).map(ofCall)
  // Health that is as it was has no line.
  const isHealth = status === 200 && /^\/(healthz|readyz)$/.test(target)
  const expected = [...(circumstances.errors ?? []), ...(isHealth ? [] : lines)]
  expect(await linesOf(id, expected.length, asked)).toEqual(expected)
  if (asked !== service) return
  for (const { operation, status } of lines) count(counted, surface, operation, status)
  const [first, second] = lines
  count(timed, surface, second ? 'batch' : first?.operation, status)
}

const bodyOf = (outcome: object) => (outcome as { body?: unknown }).body

/** The calls and the requests so far, by the labels of the metrics. */
const counted: Record<string, number> = {}
const timed: Record<string, number> = {}
function count(all: typeof counted, surface: string, operation: unknown, status: unknown): void {
  const labels = `surface="${surface}",operation="${operation ?? 'none'}",status="${status}"`
  all[labels] = (all[labels] ?? 0) + 1
}

test.each(rows.map((row, index) => [`${index}: ${row[1].slice(0, 60)}`, row] as const))(
  '%s',
  (_, row) => expectWhole(row),
)

test('500', async () => {
  await service.sql('alter table pets rename to animals')
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
  await expectWhole(['rest getPet', 'GET /v1/pets/1', {}, bug, deprecated], get)
  const creation = { errors: [errorOf('createPet')] }
  await expectWhole(['trpc createPet', 'POST /trpc/createPet', post(trpcAda), bug], creation)
  const both = ok([trpcError(bug), trpcError(bug)])
  const calls = { ...mixed(['listPets', 500], ['listPets', 500]), status: 500 }
  const batch = 'GET /trpc/listPets,listPets?batch=1'
  await expectWhole(['trpc', batch, {}, both, {}, calls], {
    errors: [errorOf('listPets'), errorOf('listPets')],
  })
})

test('503', async () => {
  // The key was never looked up, so the log has its prefix instead of its id. A file that is no database
  // is logged once, not for each request.
  const caller = { address, keyPrefix: unreachable.key.slice(0, 15) }
  const usual = { ...json, 'cache-control': 'no-store' }
  const asked = { service: unreachable, caller, usual }
  await expectWhole(['rest listPets', 'GET /v1/pets', {}, unavailable], asked)
  const { vary } = trpc
  await expectWhole(['trpc listPets', 'GET /trpc/listPets', {}, unavailable, { vary }], asked)
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
  const asked = { service: limited }
  await expectWhole(['rest listPets', 'GET /v1/pets', {}, ok([]), quota(2)], asked)
  const both = ok([data([]), trpcError(noProcedure('nothing'))])
  const calls = mixed(['listPets', 200], ['unknown', 404])
  const batch = 'GET /trpc/listPets,nothing?batch=1'
  await expectWhole(['trpc', batch, {}, both, quota(0), calls], asked)
  await expectWhole(['rest getPet', 'GET /v1/pets/1', {}, many, deprecated], asked)
  await expectWhole(['trpc listPets', 'GET /trpc/listPets', {}, many], asked)
})

test('the metrics count each of these calls once, and have one duration for each request', async () => {
  const text = await metrics.text()
  for (const [metric, expected] of [
    ['requests_total', counted],
    ['request_duration_seconds_count', timed],
  ] as const) {
    const found = text.matchAll(new RegExp(`^petstore_${metric}\\{(.*)\\} (\\d+)$`, 'gm'))
    const counts = Object.fromEntries(
      [...found].map(([, labels, count]) => [labels, Number(count)]),
    )
    expect(counts).toEqual(expected)
  }
})
