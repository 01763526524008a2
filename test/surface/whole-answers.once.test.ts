/** Complete responses of each kind: status, all headers, body, and the line in the log. */
import { afterAll, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { everyHeader } from '../support/headers.ts'
import { newMetrics } from '../support/metrics.ts'
import { corsMethods } from '../support/operations.ts'
import { storePets } from '../support/pets.ts'
import { transformer } from '../support/router.ts'
import { keys, type Service, serviceForFile } from '../support/service.ts'
import { startUnreachable } from '../support/unreachable.ts'

const shop = 'https://shop.example'
const wrongKey = `petstore_${'k'.repeat(43)}`

const { variables } = await newMetrics()
const service = await serviceForFile({ ...variables, CORS_ORIGINS: shop })
const limited = await serviceForFile({ RATE_LIMIT: '3', CORS_ORIGINS: shop })
const unreachable = await startUnreachable()
afterAll(() => unreachable.stop())
const { key: readerKey } = await keys.create(service.databaseUrl, 'reader', undefined, true)
await storePets(service.sql, [
  { name: 'Rex', categoryId: 3n, status: 'sold' },
  { name: 'Zoë 😀', categoryId: 3n, status: 'available' },
])

/** A caller without a key, with an invalid key, or with a read-only key. */
type Caller = 'anonymous' | 'invalidKey' | 'reader'
type Headers = Record<string, string>
interface Sent {
  /** Without it the caller has a key that may read and write. */
  by?: Caller
  headers?: Headers
  body?: string
}
interface Expected {
  status: number
  headers: Headers
  /** The value of a JSON body, or the text of another one; undefined if it is not checked. */
  body?: unknown
}

const policy = "default-src 'none';frame-ancestors 'none'"
const json = {
  ...everyHeader,
  'content-security-policy': policy,
  'content-type': 'application/json',
}
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
const page = {
  ...everyHeader,
  ...exposed,
  ...readable,
  'content-security-policy':
    "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
}
const file = { ...page, 'cache-control': 'no-cache', vary: 'Origin, Accept-Encoding' }
const deprecated = {
  deprecation: '@1795132800',
  link: '<https://petstore.example/v1/pets>; rel="successor-version"',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
}
/** fetch requests it with HEAD; other responses keep the connection open. */
const close = { connection: 'close' }
const kept = { connection: 'keep-alive', 'keep-alive': 'timeout=65' }
const challenge = (words: string) => ({ 'www-authenticate': words })
const invalidToken = challenge('Bearer error="invalid_token"')
const allow = (methods: string) => ({ allow: methods })

const words = {
  missing: 'The API key is missing: send the header "Authorization: Bearer <API_KEY>"',
  invalid:
    'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service',
  readOnly: 'The API key may only read: this call needs one that may write',
  malformed: 'The request is not well-formed: its JSON cannot be read',
  large: 'The body must have at most 65536 bytes',
  type: 'The body must be of the type application/json, in UTF-8, and not compressed',
  nothing: 'There is nothing at this URL',
  bug: 'Internal server error',
  database: 'The service cannot use its database right now; try again later',
  used: 'This Idempotency-Key was used for another request; take a new one',
  noKey:
    'The header Idempotency-Key must be one string of 1 to 255 ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324"',
  method: (method: string, methods: string) => `${method} is not supported here: use ${methods}`,
}

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
type Code = keyof typeof codes

/** An error of REST. */
const failed = (code: Code, message: string, headers: Headers = rest): Expected => ({
  status: codes[code][0],
  headers,
  body: { code, message, status: codes[code][0] },
})
/** The same error in the envelope of tRPC, with its field errors. */
const trpcError = (code: Code, message: string, fields?: Headers) => ({
  error: {
    message,
    code: codes[code][1],
    data: { code, httpStatus: codes[code][0], ...(fields && { fields }) },
  },
})
const trpcFailed = (
  code: Code,
  message: string,
  headers: Headers = {},
  fields?: Headers,
): Expected => ({
  status: codes[code][0],
  headers: { ...trpc, ...headers },
  body: trpcError(code, message, fields),
})

const rex = { id: 1n, name: 'Rex', categoryId: 3n, status: 'sold' }
const zoe = { id: 2n, name: 'Zoë 😀', categoryId: 3n, status: 'available' }
const plain = (pet: typeof rex) => ({ ...pet, id: Number(pet.id), categoryId: 3 })
const made = (id: bigint) => ({ id, name: 'Ada', categoryId: 3n, status: 'available' })
const ada = '{"name":"Ada","categoryId":3}'
const trpcAda = JSON.stringify('[{"name":1,"categoryId":2},"Ada",3]')
const large = ' '.repeat(65_537)
const post = (body: string, headers: Headers = {}): Sent => ({
  body,
  headers: { 'content-type': 'application/json', ...headers },
})
const withKey = (body: string, key: string) => post(body, { 'idempotency-key': key })

/** The fields of a line in the log, without those that every line has. */
type Line = Record<string, unknown>
const of =
  (surface: string) =>
  (operation: string, by: Line = { keyId: '1' }): Line => ({ surface, operation, ...by })
const [ofRest, ofTrpc] = [of('rest'), of('trpc')]
const ofNone = (path: string): Line => ({ surface: 'other', path, address: '127.0.0.1' })
const anonymous = { address: '127.0.0.1' }
const invalidKey = { address: '127.0.0.1', keyPrefix: 'petstore_kkkkkk' }

type Case = [request: string, Sent, Expected, Line | Line[]]

/** The cases of one request, which differ in the body or the caller. */
const at = (request: string, line: Line, ...rows: [Sent, Expected, by?: Line][]): Case[] =>
  rows.map(([sent, expected, by]) => [request, sent, expected, { ...line, ...by }])

/** The case of a path outside the surfaces. */
const outside = (path: string, expected: Expected, line: Line = {}, method = 'GET'): Case => [
  `${method} ${path}`,
  {},
  expected,
  { ...ofNone(path.replace(/\?.*/, '')), ...line },
]
const nothing = failed('NOT_FOUND', words.nothing, rest)
const docsFile = (type: string) => ({ status: 200, headers: { ...file, 'content-type': type } })

const fields = {
  name: 'must not be empty',
  categoryId: 'is required',
  status: 'must be one of available, pending, sold',
}
const mistakes =
  'name must not be empty; categoryId is required; status must be one of available, pending, sold'
const insufficient = challenge('Bearer error="insufficient_scope"')
const noProcedure = (name: string) => `There is no procedure with the name ${name}`
const get = words.method('GET', 'POST')

// The order matters: later cases read the pets that earlier ones create.
const cases: Case[] = [
  // REST
  ...at('GET /v1/pets?limit=2', ofRest('listPets'), [
    {},
    { status: 200, headers: rest, body: [plain(rex), plain(zoe)] },
  ]),
  ...at('GET /v1/pets?status=sold&unknown=1&limit=1', ofRest('listPets'), [
    { by: 'reader' },
    { status: 200, headers: rest, body: [plain(rex)] },
    { keyId: '2' },
  ]),
  ...at('GET /v1/pets?limit=1&unknown=1', ofRest('listPets'), [
    {},
    {
      status: 200,
      headers: { ...rest, link: '<https://petstore.example/v1/pets?limit=1&cursor=1>; rel="next"' },
      body: [plain(rex)],
    },
  ]),
  ...at('GET /v1/pets/2', ofRest('getPet'), [
    {},
    { status: 200, headers: { ...rest, ...deprecated }, body: plain(zoe) },
  ]),
  ...at('HEAD /v1/pets/2', ofRest('getPet'), [
    {},
    { status: 200, headers: { ...rest, ...deprecated, ...close }, body: '' },
  ]),
  ...at(
    'POST /v1/pets',
    ofRest('createPet'),
    [
      withKey(ada, '"whole"'),
      {
        status: 201,
        headers: { ...rest, location: 'https://petstore.example/v1/pets/3' },
        body: { ...made(3n), id: 3, categoryId: 3 },
      },
    ],
    [
      withKey('{"name":"Bea","categoryId":3}', '"whole"'),
      failed('UNPROCESSABLE_CONTENT', words.used),
    ],
    [withKey(ada, 'a b'), failed('BAD_REQUEST', words.noKey)],
    [post('{'), failed('PARSE_ERROR', words.malformed)],
    [post('[]'), failed('BAD_REQUEST', 'The body must be a JSON object')],
    [post(''), failed('BAD_REQUEST', 'The body is missing: it must be a JSON object')],
    [{}, failed('BAD_REQUEST', 'The body is missing: it must be a JSON object')],
    [post('{"name":"","status":"free"}'), failed('BAD_REQUEST', mistakes)],
    [post(large), failed('PAYLOAD_TOO_LARGE', words.large, rest)],
    [post(ada, { 'content-type': 'text/plain' }), failed('UNSUPPORTED_MEDIA_TYPE', words.type)],
    [
      { ...post(ada), by: 'reader' },
      failed('FORBIDDEN', words.readOnly, { ...rest, ...insufficient }),
      { keyId: '2' },
    ],
  ),
  ...at('GET /v1/pets?limit=0', ofRest('listPets'), [
    {},
    failed('BAD_REQUEST', 'limit must be at least 1'),
  ]),
  ...at('GET /v1/pets/404', ofRest('getPet'), [
    {},
    failed('NOT_FOUND', 'There is no animal with the id 404', { ...rest, ...deprecated }),
  ]),
  ...at('GET /v1/pets/%ff', ofRest('getPet'), [
    {},
    failed('BAD_REQUEST', 'petId must be percent-encoded UTF-8', { ...rest, ...deprecated }),
  ]),
  [
    'GET /v1/pets',
    { by: 'anonymous' },
    failed('UNAUTHORIZED', words.missing, { ...rest, ...challenge('Bearer') }),
    ofRest('listPets', anonymous),
  ],
  [
    'GET /v1/pets',
    { headers: { authorization: 'Bearer sesame' } },
    failed('UNAUTHORIZED', words.invalid, { ...rest, ...invalidToken }),
    ofRest('listPets', anonymous),
  ],
  [
    'GET /v1/pets/1',
    { by: 'invalidKey' },
    failed('UNAUTHORIZED', words.invalid, { ...rest, ...deprecated, ...invalidToken }),
    ofRest('getPet', invalidKey),
  ],
  outside(
    '/v1/pets',
    failed('METHOD_NOT_SUPPORTED', words.method('DELETE', 'GET, HEAD or POST'), {
      ...rest,
      ...allow('GET, HEAD, POST'),
    }),
    {},
    'DELETE',
  ),
  outside('/v1/nothing?a=b', nothing),
  outside('/v1/openapi-json', nothing),
  outside('/v1', nothing),
  outside('/v1/openapi.json', { status: 200, headers: { ...open, ...anyPage } }),
  // tRPC
  ...at('GET /trpc/listPets?input=[{"limit":1},1]', ofTrpc('listPets'), [
    { headers: {} },
    trpcFailed('PARSE_ERROR', words.malformed),
  ]),
  ...at(`GET /trpc/listPets?input=${JSON.stringify('[{"status":1},"sold"]')}`, ofTrpc('listPets'), [
    {},
    { status: 200, headers: trpc, body: { result: { data: [rex] } } },
  ]),
  ...at(`HEAD /trpc/getPet?input=${JSON.stringify('[{"petId":1},2]')}`, ofTrpc('getPet'), [
    {},
    { status: 200, headers: { ...trpc, ...close }, body: '' },
  ]),
  ...at(
    'POST /trpc/createPet',
    ofTrpc('createPet'),
    [post(trpcAda), { status: 200, headers: trpc, body: { result: { data: made(4n) } } }],
    [
      post(JSON.stringify('[{"name":1,"status":2},"","free"]')),
      trpcFailed('BAD_REQUEST', mistakes, {}, fields),
    ],
    [post(''), trpcFailed('PARSE_ERROR', words.malformed)],
    [post('{}'), trpcFailed('PARSE_ERROR', words.malformed)],
    [post(large), trpcFailed('PAYLOAD_TOO_LARGE', words.large)],
    [
      post(trpcAda, { 'content-type': 'text/plain' }),
      trpcFailed('UNSUPPORTED_MEDIA_TYPE', words.type),
    ],
    [{}, trpcFailed('UNSUPPORTED_MEDIA_TYPE', words.type)],
    [
      { ...post(trpcAda), by: 'reader' },
      trpcFailed('FORBIDDEN', words.readOnly, insufficient),
      { keyId: '2' },
    ],
  ),
  ...at('POST /trpc/createPet?batch=1', ofTrpc('createPet'), [
    post(`{"0":${trpcAda}}`),
    { status: 200, headers: trpc, body: [{ result: { data: made(5n) } }] },
  ]),
  ...at(`GET /trpc/getPet?input=${JSON.stringify('[{"petId":1},404]')}`, ofTrpc('getPet'), [
    {},
    trpcFailed('NOT_FOUND', 'There is no animal with the id 404'),
  ]),
  ...['GET /trpc/listPets', 'GET /trpc/listPets?connectionParams={}'].map(
    (request): Case => [
      request,
      { by: 'anonymous' },
      trpcFailed('UNAUTHORIZED', words.missing, challenge('Bearer')),
      ofTrpc('listPets', anonymous),
    ],
  ),
  ...(
    [
      ['GET /trpc/listPets', 'listPets'],
      ['GET /trpc/listPets,nothing?batch=1', 'batch'],
      ['GET /trpc/listPets?batch=1', 'listPets', { 'trpc-accept': 'application/jsonl' }],
    ] as const
  ).map(
    ([request, operation, headers]): Case => [
      request,
      { by: 'invalidKey', ...(headers && { headers }) },
      trpcFailed('UNAUTHORIZED', words.invalid, invalidToken),
      ofTrpc(operation, invalidKey),
    ],
  ),
  [
    `GET /trpc/getPet,listPets,nothing,getPet?batch=1&input={"0":${JSON.stringify('[{"petId":1},1]')},"1":${JSON.stringify('[{"limit":1},0]')}}`,
    {},
    {
      status: 207,
      headers: trpc,
      body: [
        { result: { data: rex } },
        trpcError('BAD_REQUEST', 'limit must be at least 1', { limit: 'must be at least 1' }),
        trpcError('NOT_FOUND', noProcedure('nothing')),
        trpcError('BAD_REQUEST', 'The input must be an object', { '': 'must be an object' }),
      ],
    },
    [
      { ...ofTrpc('getPet'), status: 200 },
      { ...ofTrpc('listPets'), status: 400 },
      { ...ofTrpc('unknown'), status: 404 },
      { ...ofTrpc('getPet'), status: 400 },
    ],
  ],
  [
    'GET /trpc/createPet,nothing?batch=1',
    {},
    {
      status: 207,
      headers: { ...trpc, ...allow('POST') },
      body: [
        trpcError('METHOD_NOT_SUPPORTED', get),
        trpcError('NOT_FOUND', noProcedure('nothing')),
      ],
    },
    [
      { ...ofTrpc('createPet'), status: 405 },
      { ...ofTrpc('unknown'), status: 404 },
    ],
  ],
  ...at('GET /trpc/listPets,createPet?batch=1', ofTrpc('batch'), [
    {},
    trpcFailed('BAD_REQUEST', 'A batch must be of queries or of mutations, not of both'),
  ]),
  ...at('POST /trpc/createPet,createPet?batch=1', ofTrpc('batch'), [
    withKey(`{"0":${trpcAda}}`, '"batch"'),
    trpcFailed('BAD_REQUEST', 'The header Idempotency-Key goes with one call, not with a batch'),
  ]),
  ...at(`GET /trpc/${Array(21).fill('listPets')}?batch=1`, ofTrpc('batch'), [
    {},
    trpcFailed('BAD_REQUEST', 'A batch must have at most 20 calls'),
  ]),
  ...at('GET /trpc/listPets,listPets?batch=1&input=[]', ofTrpc('batch'), [
    {},
    trpcFailed(
      'BAD_REQUEST',
      'The input of a batch must be an object, with the inputs of its calls by their index',
    ),
  ]),
  ...at('POST /trpc/listPets', ofTrpc('listPets'), [
    post(trpcAda),
    trpcFailed('METHOD_NOT_SUPPORTED', words.method('POST', 'GET'), allow('GET')),
  ]),
  ...at('GET /trpc/createPet', ofTrpc('createPet'), [
    {},
    trpcFailed('METHOD_NOT_SUPPORTED', get, allow('POST')),
  ]),
  outside(
    '/trpc/createPet',
    trpcFailed('METHOD_NOT_SUPPORTED', words.method('PUT', 'GET, HEAD or POST'), {
      ...allow('GET, HEAD, POST'),
      vary: 'Origin',
    }),
    {},
    'PUT',
  ),
  outside(
    '/trpc/%ff',
    trpcFailed('BAD_REQUEST', 'The URL of the request is not valid', { vary: 'Origin' }),
    { path: '/trpc/%…' },
  ),
  ...at('GET /trpc', ofTrpc('unknown'), [{}, trpcFailed('NOT_FOUND', noProcedure(''))]),
  // Neither surface
  ...['/nothing', '/trpcs/listPets', '/v1s/pets', '/docs/nothing'].map((path) =>
    outside(path, nothing),
  ),
  ...['/Healthz', '/healthz/', '/READYZ', '/readyz/x', '/DOCS', '/Docs/', '/docs/docs.CSS'].map(
    (path) => outside(path, nothing),
  ),
  outside('/healthz', { status: 200, headers: rest, body: { status: 'ok' } }),
  outside('/healthz', { status: 200, headers: { ...rest, ...close }, body: '' }, {}, 'HEAD'),
  outside('/readyz', { status: 200, headers: rest, body: { status: 'ready' } }),
  ...['/', '/docs', '/healthz', '/readyz', '/v1/openapi.json'].map((path) =>
    outside(
      path,
      failed('METHOD_NOT_SUPPORTED', words.method('POST', 'GET or HEAD'), {
        ...rest,
        ...allow('GET, HEAD'),
      }),
      {},
      'POST',
    ),
  ),
  ...['/', '/docs'].flatMap((path) => {
    const headers = { ...page, location: 'docs/' }
    return [
      outside(path, { status: 302, headers, body: '' }),
      outside(path, { status: 302, headers: { ...headers, ...close }, body: '' }, {}, 'HEAD'),
    ]
  }),
  outside('/docs/', docsFile('text/html; charset=utf-8')),
  outside('/docs/docs.css', docsFile('text/css; charset=utf-8'), { level: 'debug' }),
  outside('/docs/openapi.json', {
    status: 200,
    headers: {
      ...file,
      ...anyPage,
      'content-type': 'application/json',
      'content-disposition': 'attachment; filename="openapi.json"',
    },
  }),
  // CORS
  [
    'OPTIONS /v1/pets',
    { by: 'anonymous', headers: { origin: shop, 'access-control-request-method': 'POST' } },
    {
      status: 204,
      headers: {
        ...everyHeader,
        ...exposed,
        'content-security-policy': policy,
        'access-control-allow-headers':
          'Authorization,Content-Type,Idempotency-Key,X-Request-Id,trpc-accept,traceparent,tracestate,baggage',
        'access-control-allow-methods': corsMethods.join(),
        ...readable,
        'access-control-max-age': '600',
      },
      body: '',
    },
    ofNone('/v1/pets'),
  ],
  ...at('GET /trpc/nothing', ofTrpc('unknown'), [
    { headers: { origin: 'https://other.example' } },
    {
      ...trpcFailed('NOT_FOUND', noProcedure('nothing')),
      headers: { ...json, ...exposed, vary: trpc.vary, 'cache-control': 'no-store' },
    },
  ]),
]

let serial = 0

/** A response without the headers that differ each time; those are checked here. */
async function ask(request: string, sent: Sent, { origin, key }: Service) {
  const [method = '', target = ''] = request.split(/ (.*)/s)
  const id = `whole-${++serial}`
  const keyOf = { caller: key, reader: readerKey, invalidKey: wrongKey }
  const answer = await fetch(origin + target, {
    method,
    redirect: 'manual',
    ...(sent.body !== undefined && { body: sent.body }),
    headers: {
      ...(sent.by !== 'anonymous' && { authorization: `Bearer ${keyOf[sent.by ?? 'caller']}` }),
      'accept-encoding': 'identity',
      'x-request-id': id,
      origin: shop,
      ...sent.headers,
    },
  })
  const text = await answer.text()
  const {
    date = '',
    'content-length': length,
    'x-request-id': answered,
    etag,
    ...headers
  } = Object.fromEntries(answer.headers)
  expect(date).toBe(new Date(date).toUTCString())
  expect(Math.abs(Date.now() - Date.parse(date))).toBeLessThan(60_000)
  expect(answered).toBe(id)
  expect(etag !== undefined, 'an etag').toBe(
    'cache-control' in headers && /cache$/.test(String(headers['cache-control'])),
  )
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

/** The lines of a request in the log, without the fields that differ each time. */
async function linesOf(id: string, count: number, { logged }: Service): Promise<Line[]> {
  const find = () => logged.map((line) => JSON.parse(line)).filter((line) => line.requestId === id)
  await eventually(() => expect(find().length).toBeGreaterThanOrEqual(count))
  return find().map(({ time, pid, hostname, duration, ...line }) => {
    expect(Math.abs(Date.now() - time)).toBeLessThan(60_000)
    expect([pid, typeof hostname]).toEqual([process.pid, 'string'])
    if (line.msg !== 'request') return line
    expect(duration).toBeGreaterThanOrEqual(0)
    expect(duration).toBeLessThan(30_000)
    expect(duration).toBe(Math.round(duration * 10) / 10)
    return line
  })
}

/** Compares a complete response and its lines in the log. */
async function expectWhole(
  request: string,
  sent: Sent,
  { status, headers, body }: Expected,
  lines: Line | Line[],
  started = service,
): Promise<void> {
  const { id, ...answer } = await ask(request, sent, started)
  expect(answer).toEqual({
    status,
    headers: 'connection' in headers ? headers : { ...headers, ...kept },
    body: body ?? answer.body,
  })
  const [method] = request.split(' ')
  const expected = [lines].flat().map(
    (line): Line => ({
      requestId: id,
      ...('err' in line ? {} : { level: 'info', msg: 'request', method, status }),
      ...line,
    }),
  )
  expect(await linesOf(id, expected.length, started)).toEqual(expected)
  if (started !== service) return
  for (const { surface, operation = 'none', status } of expected) {
    if (surface === undefined) continue
    const labels = `surface="${surface}",operation="${operation}",status="${status}"`
    counted[labels] = (counted[labels] ?? 0) + 1
  }
}

/** The number of requests so far, by the labels of the metrics. */
const counted: Record<string, number> = {}

test.each(cases.map((given, index) => [`${index}: ${given[0].slice(0, 60)}`, ...given] as const))(
  '%s',
  (_, ...given) => expectWhole(...given),
)

/** The line in the log for an internal error. */
const cause = (msg: string) => ({
  level: 'error',
  msg,
  err: expect.objectContaining({
    type: expect.stringMatching(/Error$/),
    message: expect.stringMatching(/./),
    stack: expect.stringMatching(/\n +at /),
  }),
})

test('500', async () => {
  await service.sql('alter table pets rename to animals')
  await expectWhole(
    'GET /v1/pets/1',
    {},
    failed('INTERNAL_SERVER_ERROR', words.bug, { ...rest, ...deprecated }),
    [cause(words.bug), ofRest('getPet')],
  )
  await expectWhole(
    'POST /trpc/createPet',
    post(trpcAda),
    trpcFailed('INTERNAL_SERVER_ERROR', words.bug),
    [cause(words.bug), ofTrpc('createPet')],
  )
  const both = trpcError('INTERNAL_SERVER_ERROR', words.bug)
  await expectWhole(
    'GET /trpc/listPets,listPets?batch=1',
    {},
    { status: 500, headers: trpc, body: [both, both] },
    [cause(words.bug), cause(words.bug), ofTrpc('listPets'), ofTrpc('listPets')],
  )
})

test('503', async () => {
  const closed = { ...json, 'cache-control': 'no-store' }
  const later = { 'retry-after': '5' }
  const by = { ...anonymous, keyPrefix: unreachable.key.slice(0, 15) }
  // The key was never looked up, so the log has its prefix instead of its id. A file that is no database
  // is logged once, not for each request.
  await expectWhole(
    'GET /v1/pets',
    {},
    failed('SERVICE_UNAVAILABLE', words.database, { ...closed, ...later }),
    ofRest('listPets', by),
    unreachable,
  )
  await expectWhole(
    'GET /trpc/listPets',
    {},
    {
      status: 503,
      headers: { ...closed, ...later, vary: 'Origin, trpc-accept, accept' },
      body: trpcError('SERVICE_UNAVAILABLE', words.database),
    },
    ofTrpc('listPets', by),
    unreachable,
  )
})

test('the RateLimit headers, and 429', async () => {
  const quota = (left: number) => ({
    ratelimit: expect.stringMatching(new RegExp(`^"3-in-1min"; r=${left}; t=(60|[1-5]?\\d)$`)),
    'ratelimit-policy': expect.stringMatching(/^"3-in-1min"; q=3; w=60; pk=:[\w+/]{16}:$/),
  })
  const wait = /^(60|[1-5]?\d)$/
  const ok = { status: 200, headers: { ...rest, ...quota(2) }, body: [] }
  await expectWhole('GET /v1/pets', {}, ok, ofRest('listPets'), limited)
  await expectWhole(
    'GET /trpc/listPets,nothing?batch=1',
    {},
    {
      status: 207,
      headers: { ...trpc, ...quota(0) },
      body: [{ result: { data: [] } }, trpcError('NOT_FOUND', noProcedure('nothing'))],
    },
    [
      { ...ofTrpc('listPets'), status: 200 },
      { ...ofTrpc('unknown'), status: 404 },
    ],
    limited,
  )
  const message = expect.stringMatching(
    /^There were more than 3 calls in a minute; try again in \d+ seconds$/,
  )
  const refused = { ...quota(0), 'retry-after': expect.stringMatching(wait) }
  const restHeaders = { ...rest, ...refused }
  await expectWhole(
    'GET /v1/pets/1',
    {},
    failed('TOO_MANY_REQUESTS', message, { ...restHeaders, ...deprecated }),
    ofRest('getPet'),
    limited,
  )
  await expectWhole(
    'GET /trpc/listPets',
    {},
    trpcFailed('TOO_MANY_REQUESTS', message, refused),
    ofTrpc('listPets'),
    limited,
  )
})

test('the metrics count each of these requests once', async () => {
  const text = await (await fetch(`http://127.0.0.1:${variables.METRICS_PORT}/metrics`)).text()
  for (const metric of ['requests_total', 'request_duration_seconds_count']) {
    const found = text.matchAll(new RegExp(`^petstore_${metric}\\{(.*)\\} (\\d+)$`, 'gm'))
    const counts = Object.fromEntries(
      [...found].map(([, labels, count]) => [labels, Number(count)]),
    )
    expect(counts).toEqual(counted)
  }
})
