/**
 * The guides of the OpenAPI document, as sections of its description, which every viewer shows; and
 * samples for the TypeScript client. All of it is made from the operations and their errors.
 */
import type { OpenAPIObject } from 'trpc-to-openapi'
import { MAX_BODY } from '../../config/limits.ts'
import { NAME } from '../../config/product.ts'
import { type ApiError, methodNotSupported, notFound } from '../../errors/problem.ts'
import type { Resources } from '../../procedure/resources.ts'
import type { Operation } from './operations.ts'
import { errorsOf, examplePath } from './responses.ts'

/** What a guide is made from. */
interface Subject {
  /** The document, with the responses and parameters of all operations. */
  document: OpenAPIObject
  operations: Operation[]
  /** The public URL of `/v1`. */
  baseUrl: string
  client: Resources['client']
}

/**
 * Adds the guides to the description of a document and, where there is a client, a sample of it to each
 * operation. Throws TypeError for an error code without advice.
 */
export function addGuides(subject: Subject): void {
  const { document, operations, client } = subject
  const guides = [typeScript, paging, errors, idempotency, int64, rateLimits, deprecation]
  const texts = guides.map((guide) => guide(subject)).filter((text) => text !== undefined)
  document.info.description = [document.info.description, ...texts].join('\n\n')
  if (!client) return
  for (const operation of operations) {
    const source = sampleOf(operation, { ...subject, client })
    const samples = [{ lang: 'TypeScript', source }]
    Object.assign(objectOf(document, operation), { 'x-codeSamples': samples })
  }
}

/** Returns the part of a generated document that describes an operation. */
export function objectOf({ paths }: OpenAPIObject, { path, method }: Operation) {
  const object = paths?.[path]?.[method.toLowerCase() as 'get']
  if (!object) throw new TypeError(`${method} ${path} is missing in the generated document`)
  return object
}

type Guide = (subject: Subject) => string | undefined

const code = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\``

/** Returns operations as text, such as "`GET /pets` and `POST /pets`". */
const named = (operations: Operation[], type: Intl.ListFormatType = 'conjunction'): string =>
  new Intl.ListFormat('en-GB', { type }).format(
    operations.map(({ method, path }) => `\`${method} ${path}\``),
  )

const typeScript: Guide = (subject) => {
  const { operations, client } = subject
  const [operation] = operations
  if (!client || !operation) return undefined
  // Of a module `@scope/name/client`, the package is `@scope/name`.
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(client.module) ?? []
  return `## TypeScript? Use the client

The package \`${name}\` has a typed client of this service, over tRPC. It is on no public registry: ask the operator for it. It knows every input, output and error, and ids are \`bigint\` in it. Every operation here has a sample for it.

${code('TypeScript', sampleOf(operation, { ...subject, client }))}`
}

const paging: Guide = ({ document, operations, baseUrl }) => {
  const paged = operations.filter((operation) => operation.paged)
  const [first] = paged
  if (!first) return undefined
  const { default: usual, maximum } = parametersOf(document, first).get('limit')?.schema ?? {}
  return `## Paging

${named(paged)} ${paged.length > 1 ? 'return' : 'returns'} a list in pages. \`limit\` is the size of a page: ${usual} if you omit it, at most ${maximum}. While there are more items, the answer has a \`Link\` header with \`rel="next"\`, the address of the next page. Follow it until an answer has none. An error has no \`Link\` either, but the list goes on.

${code(
  'JavaScript',
  `let url = '${baseUrl}${examplePath(first.path)}?limit=${maximum}'
while (url) {
  const headers = { Authorization: 'Bearer <API_KEY>' }
  const response = await fetch(url, { headers })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  console.log(text)
  const link = response.headers.get('Link') ?? ''
  url = /<([^>]+)>; rel="next"/.exec(link)?.[1]
}`,
)}`
}

/** What a client does about each error. */
const advice: Partial<Record<ApiError['code'], string>> = {
  PARSE_ERROR: 'Send well-formed JSON.',
  BAD_REQUEST: 'Correct the request: `message` names what is wrong, such as each invalid field.',
  UNAUTHORIZED: 'Send a valid API key as `Authorization: Bearer <API_KEY>`.',
  FORBIDDEN: 'Use an API key that may write.',
  NOT_FOUND: 'Check the identifier and the address. A repetition does not help.',
  METHOD_NOT_SUPPORTED: 'Use one of the methods in the `Allow` header.',
  TIMEOUT: 'Repeat the request, and send it faster.',
  CONFLICT:
    'Read `message`. If a request with the same `Idempotency-Key` is still running, repeat yours in a moment; if such a thing exists already, change your request.',
  PAYLOAD_TOO_LARGE: `Send a body of at most ${MAX_BODY} bytes.`,
  UNSUPPORTED_MEDIA_TYPE: 'Send `Content-Type: application/json`, in UTF-8, and not compressed.',
  UNPROCESSABLE_CONTENT: 'Choose a new `Idempotency-Key`: this one belongs to another request.',
  TOO_MANY_REQUESTS: 'Wait as many seconds as `Retry-After` says, then repeat the request.',
  INTERNAL_SERVER_ERROR:
    'Repeat the request later. For a creation, send the same `Idempotency-Key`. If it fails again, report the `X-Request-Id` of the answer.',
  SERVICE_UNAVAILABLE:
    'Wait as many seconds as `Retry-After` says, then repeat the request. A creation may have happened: repeat it with the same `Idempotency-Key`.',
}

const errors: Guide = ({ operations }) => {
  // The last two are errors of URLs that no operation has.
  const all = [
    ...operations.flatMap(errorsOf).flatMap(({ errors }) => errors),
    notFound(),
    methodNotSupported('GET', ''),
  ].toSorted((one, other) => one.status - other.status)
  const rows = [...Map.groupBy(all, ({ code }) => code)].map(([code, errors]) => {
    const todo = advice[code]
    if (todo === undefined) throw new TypeError(`The error code ${code} needs advice in the guides`)
    const statuses = new Set(errors.map(({ status }) => status))
    return `| \`${code}\` | ${[...statuses].join(', ')} | ${todo} |`
  })
  const example = { code: 'BAD_REQUEST', message: operations[0]?.badRequest, status: 400 }
  return `## Errors

Every error has a JSON body with a \`code\` for programs, a \`message\` for people, and its HTTP \`status\`. Decide by \`code\`; treat a code that you do not know by its status. The \`message\` may change.

| Code | Status | What to do |
|---|---|---|
${rows.join('\n')}

${code('JSON', JSON.stringify(example, undefined, 2))}`
}

const idempotency: Guide = ({ document, operations, baseUrl, client }) => {
  const repeatable = operations.filter(({ takesKey }) => takesKey)
  const [first] = repeatable
  if (!first) return undefined
  const key = parametersOf(document, first).get('Idempotency-Key')?.schema.examples?.[0]
  const { exampleInput } = first
  const lines = [
    `curl -i -X ${first.method} '${baseUrl}${examplePath(first.path)}'`,
    '-H "Authorization: Bearer $API_KEY"',
    `-H 'Idempotency-Key: ${key}'`,
    ...(exampleInput
      ? [`-H 'Content-Type: application/json'`, `--data-raw '${JSON.stringify(exampleInput)}'`]
      : []),
  ]
  const inClient = client
    ? ' In the TypeScript client it is `{ context: { idempotencyKey } }`, the second argument of the call.'
    : ''
  return `## Idempotency

If the answer to ${named(repeatable, 'disjunction')} is lost, you cannot know whether the request took effect. Send an \`Idempotency-Key\` with it, best a UUID that is new for each thing you create, and repeat the request with the same key until it is answered: the service does it once, and answers a repetition as the first. The key is refused with another body (\`UNPROCESSABLE_CONTENT\`), and while the first request is still running (\`CONFLICT\`). A key is kept for a day, unless the operator chose otherwise.${inClient}

${code('curl', lines.join(' \\\n  '))}`
}

const int64: Guide = ({ document }) => {
  if (!JSON.stringify(document).includes('"format":"int64"')) return undefined
  return `## 64-bit ids in JavaScript

An id is an integer of 64 bits. A JavaScript number is exact up to 9007199254740991 only, so \`response.json()\` rounds a greater id without an error. Read ids from the text of the answer instead, as \`bigint\`, and write them with \`JSON.rawJSON\`. (They need Node.js 21, Chrome 114, Firefox 135 or Safari 18.4, or newer versions.)

${code(
  'JavaScript',
  `const exact = (_key, value, { source }) =>
  typeof value === 'number' && /^-?\\d+$/.test(source) ? BigInt(source) : value
const body = JSON.parse(await response.text(), exact)

const text = JSON.stringify(body, (_key, value) =>
  typeof value === 'bigint' ? JSON.rawJSON(String(value)) : value,
)`,
)}`
}

const rateLimits: Guide = () => `## Rate limits

The operator may limit the calls of each API key in a minute. Then every answer says in \`RateLimit-Policy\` how many calls are allowed (\`q\`), and in \`RateLimit\` how many are left (\`r\`) and after how many seconds the count starts again (\`t\`). A call beyond the limit is answered with 429 (\`TOO_MANY_REQUESTS\`) and has no effect: wait as many seconds as \`Retry-After\` says.

${code(
  'HTTP',
  `HTTP/1.1 429 Too Many Requests
Retry-After: 42
RateLimit-Policy: "60-in-1min"; q=60; w=60
RateLimit: "60-in-1min"; r=0; t=42`,
)}`

const deprecation: Guide = ({ operations, baseUrl }) => {
  const ending = operations.flatMap(({ method, path, deprecated }) =>
    deprecated ? [{ method, path, ...deprecated }] : [],
  )
  const [first] = ending
  if (!first) return undefined
  const day = (date: Date) => date.toISOString().slice(0, 10)
  const lines = ending.map(
    ({ method, path, since, sunset, successor }) =>
      `- \`${method} ${path}\` is deprecated since ${day(since)} and removed on ${day(sunset)}. Use \`${successor}\` instead.`,
  )
  return `## Deprecation

An operation is announced as deprecated before it is removed. Until then it works as before, and every answer of it has the headers \`Deprecation\`, \`Sunset\` and \`Link\` with \`rel="successor-version"\`. Log a warning when an answer has \`Deprecation\`.

${lines.join('\n')}

${code(
  'HTTP',
  `Deprecation: @${first.since.getTime() / 1000}
Sunset: ${first.sunset.toUTCString()}
Link: <${baseUrl}${first.successor}>; rel="successor-version"`,
)}`
}

/** As much of a parameter as is read here. */
interface Parameter {
  name: string
  schema: { type?: string; default?: unknown; maximum?: number; examples?: unknown[] }
}

function parametersOf(document: OpenAPIObject, operation: Operation): Map<string, Parameter> {
  // The document writes every parameter inline, without references.
  const parameters = (objectOf(document, operation).parameters ?? []) as Parameter[]
  return new Map(parameters.map((parameter) => [parameter.name, parameter]))
}

/** A call of the operation by the TypeScript client, as a program. */
function sampleOf(
  operation: Operation,
  { document, baseUrl, client }: Subject & { client: Client },
): string {
  const { name, type, example } = operation
  const call = type === 'query' ? 'query' : 'mutate'
  const input = inputOf(document, operation)
  const given = Object.keys(input).length > 0 ? literal(input) : ''
  return `import { ${client.create} } from '${client.module}'

const ${NAME} = ${client.create}({
  url: '${baseUrl.replace(/\/v1$/i, '/trpc')}',
  apiKey: '<API_KEY>',
})
${example === undefined ? '' : 'const answer = '}await ${NAME}.${name}.${call}(${given})`
}

type Client = NonNullable<Resources['client']>

/** An input of the procedure: its examples, as values of JavaScript. */
function inputOf(document: OpenAPIObject, operation: Operation): Record<string, unknown> {
  const { pathParameters, queryParameters, readBody, exampleInput } = operation
  const input = readBody?.(exampleInput) as object | undefined
  const parameters = parametersOf(document, operation)
  const inPath = [...pathParameters].map(([name, read]) => {
    const { type, examples } = parameters.get(name)?.schema ?? {}
    const [example = type === 'integer' ? 42 : undefined] = examples ?? []
    return [name, example === undefined ? 'text' : read(String(example))]
  })
  const limit = queryParameters.has('limit') ? parameters.get('limit')?.schema.default : undefined
  return { ...Object.fromEntries(inPath), ...(limit !== undefined && { limit }), ...input }
}

/** A value as JavaScript writes it. */
function literal(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'").replaceAll('\\"', '"')}'`
  if (value instanceof Date) return `new Date('${value.toISOString()}')`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{ ${fields.map(([name, field]) => `${name}: ${literal(field)}`).join(', ')} }`
}
