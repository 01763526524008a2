/** The OpenAPI document: trpc-to-openapi generates it, and this file corrects it. */
import { generateOpenApiDocument, type OpenAPIObject, type OpenApiRouter } from 'trpc-to-openapi'
import { z } from 'zod'
import type { Config } from '../../../config/config.ts'
import { TITLE, VERSION } from '../../../config/product.ts'
import { INT64_MAX, INT64_MIN } from '../../../procedure/fields.ts'
import type { Resources } from '../../../procedure/resources.ts'
import { shapesOf } from '../codec.ts'
import type { Operation } from '../operations.ts'
import fixed from './components.json' with { type: 'json' }
import { addGuides, objectOf } from './guides.ts'
import { headerComponents, responsesOf } from './responses.ts'

type Components = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>
type Component = Components[string]

/** Returns the OpenAPI 3.1 document of operations. Throws TypeError for two different schemas with one name. */
export function openApiDocument(
  { description, client }: Pick<Resources, 'description' | 'client'>,
  operations: Operation[],
  servers: Pick<Config, 'baseUrl' | 'stagingUrl'>,
): OpenAPIObject {
  const document = generateOpenApiDocument(routerOf(operations), {
    title: TITLE,
    description,
    version: VERSION,
    license: { name: 'MIT', identifier: 'MIT' },
    openApiVersion: '3.1.0',
    baseUrl: servers.baseUrl,
    securitySchemes: fixed.securitySchemes as never, // its type is that of a literal
  }) as OpenAPIObject // the generator declares the same type of openapi3-ts
  document.servers = [
    { url: servers.baseUrl, description: isLocal(servers.baseUrl) ? 'Local' : 'Production' },
    ...(servers.stagingUrl ? [{ url: servers.stagingUrl, description: 'Staging' }] : []),
  ]
  const headings = new Map(operations.map(({ tag, heading }) => [tag, heading]))
  document.tags = [...headings].map(([name, description]) => ({ name, description }))
  const { schemas = {}, ...components } = document.components ?? {}
  for (const [name, schema] of Object.entries(fixed.schemas as Components)) {
    addSchema(schemas, name, schema)
  }
  for (const operation of operations) correct(document, schemas, operation)
  document.components = {
    ...components,
    schemas,
    headers: headerComponents(operations, servers.baseUrl),
  }
  for (const schema of schemasOf(document, operations)) visit(schema, completeInteger)
  addGuides({ document, operations, baseUrl: servers.baseUrl, client })
  return document
}

/**
 * Returns the router of operations as the generator needs it. The generator refuses a parameter in a
 * wrapper that it does not know, and unwraps an optional one, which loses its description. It leaves
 * every pipe as it is.
 */
function routerOf(operations: Operation[]): OpenApiRouter {
  const procedures = operations.map(({ name, procedure, input, ...operation }) => {
    const [shape = {}] = shapesOf(input, 'input') // the input of an operation is an object
    const { pathParameters, queryParameters } = operation
    const fields = Object.entries(shape).map(([field, schema]) => {
      const isParameter = pathParameters.has(field) || queryParameters.has(field)
      return [field, isParameter ? schema?.pipe(z.unknown()) : schema]
    })
    const { id, ...meta } = input.meta() ?? {}
    const inputs = [z.object(Object.fromEntries(fields)).meta(meta)]
    return [name, { _def: { ...procedure._def, inputs } }]
  })
  // The generator reads nothing else of a router.
  return { _def: { procedures: Object.fromEntries(procedures) } } as unknown as OpenApiRouter
}

const isLocal = (url: string) => /^https?:\/\/(localhost|127\.|\[::1\])/i.test(url)

function correct(document: OpenAPIObject, schemas: Components, operation: Operation): void {
  const { name, bodyName, exampleInput } = operation
  const object = objectOf(document, operation)
  object.operationId = name
  const output = object.responses?.[200]?.content?.['application/json']?.schema
  object.responses = responsesOf(operation, output)
  // The generator writes the schemas of all parameters inline.
  for (const parameter of (object.parameters ?? []) as { name: string; schema: Schema }[]) {
    allowWrites(schemas, parameter.schema)
    // Programs that show the document expect the description in the parameter, not in its schema.
    const { description, ...schema } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description, schema })
    if (operation.paged && parameter.name === 'limit') boundPage(schemas, output, schema)
  }
  // The generator writes the schema of a body inline, too.
  const body = object.requestBody as { content: Record<string, { schema: Component }> } | undefined
  delete object.requestBody
  if (!body || !bodyName || !exampleInput) return
  const inline = body.content['application/json']?.schema ?? {}
  allowWrites(schemas, inline)
  const schema = addSchema(schemas, bodyName, inline)
  const content = { 'application/json': { schema, example: exampleInput } }
  object.requestBody = { required: true, content }
}

/**
 * Removes `readOnly` from a schema of a request and from its components: zod writes it for `readonly()`,
 * which is about TypeScript, and OpenAPI forbids to send such a field.
 */
function allowWrites(schemas: Components, part: unknown): void {
  visit(part, (schema) => {
    delete schema.readOnly
    if (schema.$ref !== undefined) allowWrites(schemas, referred(schemas, schema.$ref))
  })
}

/** Sets `maxItems` of a page to the maximum of `limit`, in its component or inline. */
function boundPage(schemas: Components, page: object | undefined, limit: Schema): void {
  const { $ref } = page as { $ref?: string }
  const list = $ref === undefined ? page : referred(schemas, $ref)
  if (!list || limit.maximum === undefined) throw new TypeError('A page needs a limit')
  Object.assign(list, { maxItems: limit.maximum })
}

/** Returns the components of a document, and the schemas that stand elsewhere in it. */
function schemasOf(document: OpenAPIObject, operations: Operation[]): unknown[] {
  const inOperations = operations.flatMap((operation) => {
    const { parameters = [], responses = {} } = objectOf(document, operation) as WithSchemas
    const contents = Object.values(responses).flatMap(({ content = {} }) => Object.values(content))
    return [...parameters, ...contents].map(({ schema }) => schema)
  })
  return [...Object.values(document.components?.schemas ?? {}), ...inOperations]
}

/** Calls a function with a schema, or with each of a list, and with all schemas inside. */
function visit(part: unknown, change: (schema: Schema) => void): void {
  if (typeof part !== 'object' || part === null) return
  if (!Array.isArray(part)) change(part)
  for (const [keyword, inner] of Object.entries(part)) {
    if (HAVE_VALUES.has(keyword)) continue
    // The names in this map are those of fields.
    visit(keyword === 'properties' ? Object.values(inner) : inner, change)
  }
}

/** The keywords whose values are no schemas, even if they look like one. */
const HAVE_VALUES = new Set(['example', 'examples', 'default', 'enum', 'const'])

/**
 * Sets the format of an integer of at most 32 bits, and the range of an int64. A number would round
 * that range, so it is raw JSON, which JSON.stringify writes unchanged.
 */
function completeInteger(schema: Schema): void {
  const { type, format, minimum = INT64_MIN, maximum = INT64_MAX } = schema
  if (typeof minimum === 'object') return // already set, because two parents share this schema
  if (type === 'integer' && format === 'int64') {
    Object.assign(schema, { minimum: exactly(minimum), maximum: exactly(maximum) })
  } else if (type === 'integer' && minimum >= -(2 ** 31) && maximum < 2 ** 31) {
    schema.format = 'int32'
  }
}

const exactly = (value: number | bigint) => JSON.rawJSON(String(value))

const COMPONENTS = '#/components/schemas/'

const referred = (schemas: Components, ref: string) => schemas[ref.slice(COMPONENTS.length)]

/** Adds a component, and returns its reference. */
function addSchema(schemas: Components, name: string, schema: Component) {
  const known = schemas[name]
  if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
    throw new TypeError(`There are two different schemas with the name ${name}`)
  }
  schemas[name] = schema
  return { $ref: COMPONENTS + name }
}

/** The parts of an operation with schemas that are no components. */
interface WithSchemas {
  parameters?: { schema: unknown }[]
  responses?: Record<string, { content?: Record<string, { schema: unknown }> }>
}

/** The fields of a JSON Schema that this file reads. */
interface Schema {
  $ref?: string
  readOnly?: boolean
  type?: string
  format?: string
  minimum?: number
  maximum?: number
  description?: string
}
