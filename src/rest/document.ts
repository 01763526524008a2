/** The OpenAPI document: generated from the router by trpc-to-openapi, then made exact. */
import { generateOpenApiDocument, type OpenAPIObject } from 'trpc-to-openapi'
import { z } from 'zod'
import { createSchema } from 'zod-openapi'
import type { AppRouter } from '../router.ts'
import { hasBody, type Operation, operationsOf } from './operations.ts'
import { headerComponents, responsesOf } from './responses.ts'

/** Where the service is found: the addresses of `/v1`, in production and in staging. */
export interface Servers {
  baseUrl: string
  stagingUrl: string
}

/** The OpenAPI 3.1 document of a router's REST operations. */
export function openApiDocument(router: AppRouter, servers: Servers): OpenAPIObject {
  const operations = operationsOf(router)
  const document = generateOpenApiDocument(router, {
    title: 'Petstore',
    description,
    version: '1.0.0',
    license: { name: 'MIT', identifier: 'MIT' },
    openApiVersion: '3.1.0',
    baseUrl: servers.baseUrl,
    securitySchemes: {
      apiKey: { type: 'http', scheme: 'bearer', description: 'A key that the operator gave you.' },
    },
    defs: { Error: errorSchema },
  }) as OpenAPIObject
  document.servers = [
    { url: servers.baseUrl, description: 'Production' },
    { url: servers.stagingUrl, description: 'Staging' },
  ]
  document.tags = [{ name: 'pets', description: 'The animals of the store.' }]
  for (const operation of operations) correct(document, operation)
  // `Error` stands for all the error schemas that the generator made up.
  const { schemas = {}, ...components } = document.components ?? {}
  const kept = Object.entries(schemas).filter(([id]) => !id.startsWith('error.'))
  document.components = {
    ...components,
    schemas: Object.assign(Object.fromEntries(kept), ...operations.filter(hasBody).map(body)),
    headers: headerComponents,
  }
  return document
}

const description = `A catalogue of animals for a store: list them, add one, get one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. Bodies are JSON. Identifiers are integers of 64 bits, which a JavaScript number cannot always hold exactly.`

const errorSchema = z
  .object({
    code: z.string().meta({
      description:
        'Machine-readable error code. More codes may come: treat one that you do not know by its `status`.',
    }),
    message: z.string().meta({ description: 'Human-readable description.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status code.' }),
  })
  .meta({ id: 'Error', description: 'What every error is answered with.' })

/**
 * The components of a body: the generator would write it out in place, without its name. As input,
 * so that what has a default need not be sent, and unknown fields may be.
 */
function body({ name, input }: Operation): Record<string, object> {
  if (!input.meta()?.id) throw new TypeError(`The input of ${name} needs an id: its name`)
  return createSchema(input, { io: 'input', openapiVersion: '3.1.0' }).components
}

function correct(document: OpenAPIObject, operation: Operation): void {
  const { path, method, input } = operation
  const object = document.paths?.[path]?.[method.toLowerCase() as 'get']
  if (!object) throw new TypeError(`${method} ${path} is missing in the generated document`)
  const output = object.responses?.[200].content['application/json'].schema
  object.responses = responsesOf(operation, output)
  // Readers look for the description of a parameter beside its name, not in its schema.
  for (const parameter of (object.parameters ?? []) as { schema: { description?: string } }[]) {
    const { description, ...schema } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description, schema })
  }
  if (hasBody(operation)) {
    const schema = { $ref: `#/components/schemas/${input.meta()?.id}` }
    object.requestBody = {
      required: true,
      content: { 'application/json': { schema, example: operation.rest.examples.input } },
    }
  }
}
