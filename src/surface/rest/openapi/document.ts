/**
 * The OpenAPI document: trpc-to-openapi (3.3) generates it, and this file corrects it:
 *
 * | Part | Generated | Corrected, because |
 * |---|---|---|
 * | `servers` | one | production and staging are two |
 * | `tags` | their names alone | readers see the texts of the tags |
 * | `operationId` | `pets-list` of a nested router | it is a name in generated code: `petsList` |
 * | `description` | that of the procedure | headers for pages and keys are of REST alone |
 * | `responses` | 200, and errors as `{ message, code, issues }` | a creation is 201, a removal 204, and an error is an `Error` |
 * | `parameters` | with the description in the schema, or without one behind `optional()` | programs look for it in the parameter |
 * | `requestBody` | with the schema inline | generators name a type after its reference |
 * | `default` | in parameters and bodies | of bodies it is in the description: see bodies.ts |
 * | `additionalProperties` | false for outputs | answers may gain fields |
 * | `x-codeSamples`, `components.headers`, `Idempotency-Key`, headers of middlewares | nothing | they are of this service |
 * | `x-safe` | nothing | a query by POST changes nothing (RFC 9110, section 9.2.1), which its method does not say |
 */
import type { AnyTRPCRouter } from '@trpc/server'
import { generateOpenApiDocument, type OpenAPIObject } from 'trpc-to-openapi'
import type { Config } from '../../../config/config.ts'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS, TITLE, VERSION } from '../../../config/product.ts'
import { Problem, problem, problemOfInput, tooManyRequests } from '../../../errors/problem.ts'
import { idempotencyParameter } from '../../../idempotency/header.ts'
import { type Authentication, isCookie, unauthorized } from '../../../procedure/authentication.ts'
import { type AccessHeader, type RestMeta, restMeta } from '../../../procedure/meta.ts'
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../../procedure/paging.ts'
import { replaceBigints } from '../exact-json.ts'
import { operationIdOf, type Route } from '../routes.ts'
import { describeDefaults } from './bodies.ts'
import * as fixed from './components.ts'
import { serversOf, trpcUrlOf } from './published.ts'

type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>

/**
 * The texts of the document, beside those of its operations. `{{baseUrl}}` and `{{trpcUrl}}` in them are the public
 * URLs; `{{defaultLimit}}`, `{{maxLimit}}` (items of a page) and `{{maxBody}}` (bytes) are the limits.
 */
export interface Texts {
  /** The description of the API, in Markdown. */
  description: string
  /** The program in TypeScript before the `sample` of each operation. */
  sample: string
}

/** Returns the OpenAPI 3.1 document of routes, as JSON. Throws TypeError for two different schemas with one name, and for two texts of one tag. */
export function openApiDocument(
  routes: Route[],
  { description, sample }: Texts,
  urls: Pick<Config, 'baseUrl' | 'stagingUrl'>,
  authentication?: Authentication,
): string {
  const values: Record<string, unknown> = {
    ...{ baseUrl: urls.baseUrl, trpcUrl: trpcUrlOf(urls) },
    ...{ defaultLimit: DEFAULT_LIMIT, maxLimit: MAX_LIMIT, maxBody: MAX_BODY },
  }
  const filled = (text: string) =>
    text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name) => String(values[name] ?? whole))
  const document = generateOpenApiDocument(generatorsRouter(routes), {
    title: TITLE,
    description: filled(description),
    version: VERSION,
    license: { name: 'MIT', identifier: 'MIT' },
    openApiVersion: '3.1.0',
    baseUrl: urls.baseUrl,
    securitySchemes: schemesOf(authentication),
  }) as OpenAPIObject // the generator declares the same type of openapi3-ts
  document.servers = serversOf(urls)
  const tags = new Map<string, RestMeta['tag']>()
  const schemas = { ...document.components?.schemas, ...(fixed.schemas as Schemas) }
  for (const route of routes) {
    const { name, description } = route.tag
    const known = tags.get(name) ?? route.tag
    if (known.description !== description) {
      const { operation } = route
      throw new TypeError(`The procedure ${operation.name} has another text for the tag ${name}`)
    }
    tags.set(name, known)
    const object = correct(document, schemas, route, authentication)
    if (!route.sample) continue
    const source = filled(sample) + route.sample
    Object.assign(object, { 'x-codeSamples': [{ lang: 'TypeScript', source }] })
  }
  document.tags = [...tags.values()]
  Object.assign(document.components ?? {}, { schemas, headers: fixed.headers })
  return toOpenJson(document)
}

/** Returns the JSON of schemas. zod closes that of each output, but answers may gain fields. */
const toOpenJson = (schemas: object) =>
  JSON.stringify(schemas, (keyword, value) =>
    keyword === 'additionalProperties' && value === false ? undefined : value,
  )

/** Returns the security schemes: an operation needs one of them. */
const schemesOf = (authentication?: Authentication) => ({
  ...(authentication && { signIn: authentication.scheme }),
  ...(authentication?.besideApiKeys !== false && fixed.securitySchemes),
})

/** Returns what the generator reads of a router: the procedures of the routes, with one input each. */
function generatorsRouter(routes: Route[]): AnyTRPCRouter {
  const procedures = routes.map((route) => {
    const { name, type, input, output } = route.operation
    const inputs = route.takesInput ? [input] : []
    return [name, { _def: { type, inputs, output, meta: restMeta(route) } }]
  })
  return { _def: { procedures: Object.fromEntries(procedures) } } as unknown as AnyTRPCRouter
}

const MORE_PAGES =
  'If there are more, the response has a `Link` header with `rel="next"`, the URL of the next page.'

interface Parameter {
  name: string
  schema: { description?: string | undefined }
}

/** Corrects the part of a generated document that describes a route, and returns it. */
function correct(
  { paths }: OpenAPIObject,
  schemas: Schemas,
  route: Route,
  authentication?: Authentication,
) {
  const { operationId, path, method, description, creates, takesKey } = route
  const { name, type, input, isPaged, access } = route.operation
  const object = paths?.[path]?.[method.toLowerCase() as 'get']
  if (!object) throw new TypeError(`${method} ${path} is missing in the generated document`)
  const output = object.responses?.[200]?.content?.['application/json']?.schema
  object.operationId = operationId
  // The sentences about headers belong to REST alone: tRPC's clients show the description.
  const key = `With an \`Idempotency-Key\` a request can be repeated safely: the repetition ${creates ? 'adds' : 'changes'} nothing and returns the first response.`
  const sentences = [description, isPaged && MORE_PAGES, takesKey && key]
  object.description = sentences.filter(Boolean).join(' ')
  object.responses = responsesOf(route, output, authentication)
  if (access.isPublic) object.security = []
  if (type === 'query' && method !== 'GET') Object.assign(object, { 'x-safe': true })
  // The generator writes the schemas of parameters and bodies inline.
  const parameters = [...route.pathParameters, ...route.queryParameters]
  for (const parameter of (object.parameters ?? []) as Parameter[]) {
    // Programs that show the document expect the description in the parameter, not in its schema. The
    // generator ignores one that follows `optional()`.
    const own = parameters.find(({ name }) => name === parameter.name)?.description
    const { description = own, ...schema } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description, schema })
  }
  const headers = Object.entries(access.headers ?? {}).map(headerParameter)
  if (headers.length > 0) object.parameters = [...(object.parameters ?? []), ...headers]
  if (takesKey) object.parameters = [...(object.parameters ?? []), idempotencyParameter]
  const body = object.requestBody as { content: Record<string, { schema: Schemas[string] }> }
  delete object.requestBody
  if (!route.readsBody) return object
  const schema = body.content['application/json']?.schema ?? {}
  describeDefaults(schema, schemas)
  const id = input.meta()?.id
  if (!id) throw new TypeError(`The body of ${name} has no id`) // `routesOf` has checked it
  if (schemas[id] && toOpenJson(schemas[id]) !== toOpenJson(schema))
    throw new TypeError(`The body of the procedure ${name} has the id ${id} of another schema`)
  schemas[id] = schema
  const content = {
    schema: { $ref: `#/components/schemas/${id}` },
    example: asJson(route.exampleInput),
  }
  object.requestBody = { required: true, content: { 'application/json': content } }
  return object
}

/** Returns the parameter of a header that a middleware reads. */
const headerParameter = ([name, header]: [string, AccessHeader]) => ({
  in: 'header' as const,
  name,
  required: !header.isOptional,
  schema: { type: 'string' as const },
  description: header.description,
  example: header.example,
})

/** An error response: whether the operation has it, its description, and its errors, which have one status. */
type Row = [condition: unknown, description: string, ...errors: [Problem, ...Problem[]]]

/** Returns all responses of a route by status; `schema` is that of its success. */
function responsesOf(route: Route, schema: object | undefined, authentication?: Authentication) {
  const { method, readsBody, takesKey, notFound = [], conflict, creates, after, rules = [] } = route
  const { status, deprecated, example, operation } = route
  const isPublic = operation.access.isPublic === true
  const changes = operation.type === 'mutation' && !isPublic
  const always = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']
  if (deprecated) always.push('Deprecation', 'Sunset', 'Link')

  const keyRunning = 'A request with the same `Idempotency-Key` is still running'
  const order = after ? `: \`${operationIdOf(after)}\` comes first` : ''
  const violation = `The resource exists already, or its state does not allow the request${order}`
  const missing = [notFound].flat().map((message) => new Problem('NOT_FOUND', message))
  const taken = [conflict ?? []].flat().map((message) => new Problem('CONFLICT', message))
  const broken = rules.map((message) => new Problem('BAD_REQUEST', message))
  const orRule = rules.length > 0 ? `; or it breaks a rule: ${rules.join('; ')}` : ''
  const errors: Row[] = [
    [!readsBody, `A parameter is invalid${orRule}`, badRequest(route), ...broken],
    [
      readsBody,
      `The body lacks required fields, has invalid values (\`BAD_REQUEST\`), or is not JSON (\`PARSE_ERROR\`)${orRule}`,
      badRequest(route),
      problem('malformed'),
      ...broken,
    ],
    [
      !isPublic && authentication,
      'The sign-in is missing or invalid',
      authentication ? unauthorized(authentication) : problem('missingKey'),
    ],
    [
      !isPublic && authentication?.besideApiKeys !== false,
      'The API key is missing or invalid',
      problem('invalidKey'),
    ],
    [
      changes && authentication?.besideApiKeys !== false,
      'The API key may only read',
      problem('readOnlyKey'),
    ],
    [changes && authentication, 'The caller may only read', problem('readOnlyCaller')],
    [
      changes && authentication && isCookie(authentication),
      'The request comes from another page',
      problem('wrongOrigin'),
    ],
    [missing.length > 0, 'The identifier does not exist', ...(missing as [Problem])],
    [true, 'The request did not arrive in time', problem('timeout')],
    [conflict && !takesKey, violation, ...(taken as [Problem])],
    [
      conflict && takesKey,
      `${violation}. ${keyRunning}`,
      ...([...taken, problem('keyRunning')] as [Problem]),
    ],
    [!conflict && takesKey, keyRunning, problem('keyRunning')],
    [readsBody, `The body has more than ${MAX_BODY} bytes`, problem('bodyTooLarge')],
    [readsBody, 'The body is not `application/json`, or is compressed', problem('mediaType')],
    [takesKey, 'The `Idempotency-Key` was used for another request', problem('keyUsed')],
    [true, 'There were too many calls in the last minute', tooManyRequests(60, 42)],
    [
      true,
      `The URL and the headers have more than ${MAX_HEADERS} bytes, or there are more than ${MAX_HEADER_COUNT} headers`,
      problem('headersTooLarge'),
    ],
    [true, 'The service failed; trying again may help', problem('internal')],
    [true, 'The service cannot answer right now', problem('unavailable')],
    ...(operation.access.errors ?? []).map(
      ({ code, message, description }): Row => [true, description, new Problem(code, message)],
    ),
  ]
  const withoutAnswer = method === 'DELETE' ? 'Removed' : 'Done'
  const success = {
    description: { 200: 'Success', 201: 'Added', 204: withoutAnswer }[status],
    headers: references([
      ...always,
      ...(creates ? ['Location'] : operation.isPaged ? ['Link'] : []),
    ]),
    ...(status !== 204 && {
      content: {
        'application/json': { schema, example: asJson(example) },
      },
    }),
  }
  const rows = errors.filter(([condition]) => condition)
  const responses = [...Map.groupBy(rows, ([, , { status }]) => status)].map(([status, same]) => {
    const descriptions = same.map(([, description]) => description)
    const problems = same.flatMap(([, , ...problems]) => problems) as [Problem, ...Problem[]]
    return [status, response(always, descriptions.join('. '), ...problems)]
  })
  return { [status]: success, ...Object.fromEntries(responses) }
}

/** The statuses of requests that are refused before their operation is known. */
const EARLY = [408, 431]

function response(always: string[], description: string, ...errors: [Problem, ...Problem[]]) {
  const isEarly = EARLY.includes(errors[0].status)
  const names = errors.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0))
  const headers = references(isEarly ? ['X-Request-Id'] : [...always, ...names])
  const examples = errors.map(({ body }) => body)
  // The second example with the same code has its number as a suffix.
  const nameOf = (code: string, at: number) =>
    examples.findIndex((other) => other.code === code) === at ? code : `${code}_${at + 1}`
  const named = examples.map((value, at) => [nameOf(value.code, at), { value }])
  const content = {
    schema: { $ref: '#/components/schemas/Error' },
    ...(errors.length > 1 ? { examples: Object.fromEntries(named) } : { example: examples[0] }),
  }
  return { description, headers, content: { 'application/json': content } }
}

/** Returns a copy of an example that JSON.stringify writes with all digits. */
const asJson = (example: unknown) => replaceBigints(structuredClone(example))

const references = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Returns the error for an empty body, or for a first parameter that is `x`; else one that always exists. */
function badRequest({ operation, readsBody, pathParameters, queryParameters }: Route): Problem {
  const [{ name: first } = { name: '' }] = [...pathParameters, ...queryParameters]
  const wrong = readsBody ? {} : { [first]: 'x' }
  const issues = operation.input
    .safeParse(wrong)
    .error?.issues.filter(({ path: [field] }) =>
      readsBody ? !pathParameters.some(({ name }) => name === field) : field === first,
    )
  return issues?.length
    ? problemOfInput({ issues })
    : problem(readsBody ? 'notAnObject' : 'invalidHost')
}
