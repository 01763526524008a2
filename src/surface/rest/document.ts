/** The OpenAPI document: trpc-to-openapi generates it, and this file corrects it. */
import { generateOpenApiDocument, type OpenAPIObject, type OpenApiRouter } from 'trpc-to-openapi'
import { z } from 'zod'
import { createSchema } from 'zod-openapi'
import type { Config } from '../../config/config.ts'
import { TITLE, VERSION } from '../../config/product.ts'
import { INT64_MAX, INT64_MIN } from '../../procedure/int64.ts'
import type { Resources } from '../../procedure/resources.ts'
import { addGuides, objectOf } from './guides.ts'
import type { Operation } from './operations.ts'
import { headerComponents, responsesOf } from './responses.ts'

type Components = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>

/** Returns the OpenAPI 3.1 document of a router. Throws TypeError for two different schemas with one name. */
export function openApiDocument(
  { router, description, client }: Pick<Resources, 'router' | 'description' | 'client'>,
  operations: Operation[],
  servers: Pick<Config, 'baseUrl' | 'stagingUrl'>,
): OpenAPIObject {
  // The generator accepts any router with an object as its meta, but its type requires its own meta.
  const document = generateOpenApiDocument(router as OpenApiRouter, {
    title: TITLE,
    description,
    version: VERSION,
    license: { name: 'MIT', identifier: 'MIT' },
    openApiVersion: '3.1.0',
    baseUrl: servers.baseUrl,
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        description:
          'A key that the operator gave you, sent as `Authorization: Bearer <API_KEY>`. A read-only key receives 403 from every operation that changes something.',
      },
    },
    defs: { Error: errorSchema, Refusal: refusalSchema },
  }) as OpenAPIObject // the generator declares the same type of openapi3-ts
  document.servers = [
    { url: servers.baseUrl, description: isLocal(servers.baseUrl) ? 'Local' : 'Production' },
    ...(servers.stagingUrl ? [{ url: servers.stagingUrl, description: 'Staging' }] : []),
  ]
  const headings = new Map(operations.map(({ tag, heading }) => [tag, heading]))
  document.tags = [...headings].map(([name, description]) => ({ name, description }))
  // `Error` replaces all error schemas of the generator.
  const { schemas: generated = {}, ...components } = document.components ?? {}
  const schemas: Components = Object.fromEntries(
    Object.entries(generated).filter(([id]) => !id.startsWith('error.')),
  )
  for (const operation of operations) correct(document, schemas, operation)
  document.components = {
    ...components,
    schemas,
    headers: headerComponents(operations, servers.baseUrl),
  }
  completeIntegers(document)
  addGuides({ document, operations, baseUrl: servers.baseUrl, client })
  return document
}

const isLocal = (url: string) => /^https?:\/\/(localhost|127\.|\[::1\])/i.test(url)

const errorSchema = z
  .object({
    code: z.string().meta({
      description:
        'Machine-readable error code. More codes may come: treat one that you do not know by its `status`.',
    }),
    message: z.string().meta({ description: 'Human-readable description.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status code.' }),
  })
  .meta({
    id: 'Error',
    description: 'The body of every error.',
    // A Refusal is an Error with one more field.
    override: ({ jsonSchema }) => delete jsonSchema.additionalProperties,
  })

const refusalSchema = errorSchema
  .extend({
    error: z.string().meta({ description: "The same for tRPC's clients, in their encoding." }),
  })
  .meta({
    id: 'Refusal',
    description:
      'The body of an error whose operation is not known: an Error with one more field. A request that is not well-formed HTTP receives it, with 400.',
  })

function correct(document: OpenAPIObject, schemas: Components, operation: Operation): void {
  const { name, bodyName, exampleInput } = operation
  const object = objectOf(document, operation)
  object.operationId = name
  const output = object.responses?.[200]?.content?.['application/json']?.schema
  object.responses = responsesOf(operation, output)
  // The generator writes the schemas of all parameters inline.
  for (const parameter of (object.parameters ?? []) as { name: string; schema: Schema }[]) {
    // Programs that show the document expect the description in the parameter, not in its schema.
    const { description, ...schema } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description, schema })
    if (operation.paged && parameter.name === 'limit') boundPage(schemas, output, schema)
  }
  delete object.requestBody
  if (exampleInput) {
    const schema = { $ref: `#/components/schemas/${bodyName}` }
    addBody(schemas, operation)
    const content = { 'application/json': { schema, example: exampleInput } }
    object.requestBody = { required: true, content }
  }
}

/** Sets `maxItems` of a page to the maximum of `limit`, in its component or inline. */
function boundPage(schemas: Components, page: object | undefined, limit: Schema): void {
  const { $ref } = page as { $ref?: string }
  const list = $ref === undefined ? page : schemas[$ref.slice('#/components/schemas/'.length)]
  if (!list || limit.maximum === undefined) throw new TypeError('A page needs a limit')
  Object.assign(list, { maxItems: limit.maximum })
}

/**
 * Sets the format of all integers of at most 32 bits, and the range of all int64. A number would round
 * that range, so it is raw JSON, which JSON.stringify writes unchanged.
 */
function completeIntegers(part: unknown): void {
  if (typeof part !== 'object' || part === null) return
  const { type, format, minimum = INT64_MIN, maximum = INT64_MAX } = part as Schema
  if (typeof minimum === 'object') return // already set, because two parents share this schema
  if (type === 'integer' && format === 'int64') {
    Object.assign(part, { minimum: exactly(minimum), maximum: exactly(maximum) })
  } else if (type === 'integer' && minimum >= -(2 ** 31) && maximum < 2 ** 31) {
    Object.assign(part, { format: 'int32' })
  }
  for (const inner of Object.values(part)) completeIntegers(inner)
}

const exactly = (value: number | bigint) => JSON.rawJSON(String(value))

/**
 * Adds the component of an operation's body: the generator would write it inline, with the fields of
 * the path. It is the schema of the input side, in which fields with a default are optional, and
 * unknown fields are valid.
 */
function addBody(schemas: Components, { input, bodyName, pathParameters }: Operation): void {
  const { components } = createSchema(input, { io: 'input', openapiVersion: '3.1.0' })
  for (const [component, generated] of Object.entries(components)) {
    const schema =
      component === bodyName ? without(pathParameters, generated as ObjectSchema) : generated
    const known = schemas[component]
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new TypeError(`There are two different schemas with the name ${component}`)
    }
    schemas[component] = schema
  }
}

/** The fields of a JSON Schema that this file reads. */
interface Schema {
  type?: string
  format?: string
  minimum?: number
  maximum?: number
  description?: string
}

type ObjectSchema = Extract<Components[string], { properties?: unknown }>

function without(names: Map<string, unknown>, schema: ObjectSchema): ObjectSchema {
  if (names.size === 0) return schema
  const { properties = {}, required = [], ...rest } = schema
  const left = required.filter((name) => !names.has(name))
  const fields = Object.entries(properties).filter(([name]) => !names.has(name))
  return {
    ...rest,
    properties: Object.fromEntries(fields),
    ...(left.length > 0 && { required: left }),
  }
}
