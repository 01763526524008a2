/** The OpenAPI document: trpc-to-openapi generates it, and this file corrects it. */
import type { AnyTRPCRouter } from '@trpc/server'
import { generateOpenApiDocument, type OpenAPIObject } from 'trpc-to-openapi'
import type { Config } from '../../../config/config.ts'
import { TITLE, VERSION } from '../../../config/product.ts'
import { idempotencyParameter } from '../../../idempotency/header.ts'
import type { Operation } from '../operations.ts'
import * as fixed from './components.ts'
import { responsesOf } from './responses.ts'

type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>

/** The texts of the document, beside those of its operations. `{{baseUrl}}` and `{{trpcUrl}}` are the public URLs. */
export interface Texts {
  /** The description of the API, in Markdown. */
  description: string
  /** The description of each tag, by name. */
  tags: Record<string, string>
  /** The program in TypeScript before the `sample` of each operation. */
  sample: string
}

/** Returns the OpenAPI 3.1 document of operations, as JSON. Throws TypeError for two different schemas with one name. */
export function openApiDocument(
  router: AnyTRPCRouter,
  operations: Operation[],
  { description, tags, sample }: Texts,
  { baseUrl, stagingUrl }: Pick<Config, 'baseUrl' | 'stagingUrl'>,
): string {
  const withUrls = (text: string) =>
    text
      .replaceAll('{{baseUrl}}', baseUrl)
      .replaceAll('{{trpcUrl}}', baseUrl.replace(/\/v1$/i, '/trpc'))
  const document = generateOpenApiDocument(router, {
    title: TITLE,
    description: withUrls(description),
    version: VERSION,
    license: { name: 'MIT', identifier: 'MIT' },
    openApiVersion: '3.1.0',
    baseUrl,
    securitySchemes: fixed.securitySchemes,
  }) as OpenAPIObject // the generator declares the same type of openapi3-ts
  document.servers = [
    { url: baseUrl, description: isLocal(baseUrl) ? 'Local' : 'Production' },
    ...(stagingUrl ? [{ url: stagingUrl, description: 'Staging' }] : []),
  ]
  document.tags = Object.entries(tags).map(([name, description]) => ({ name, description }))
  const schemas = { ...document.components?.schemas, ...(fixed.schemas as Schemas) }
  for (const operation of operations) {
    const object = correct(document, schemas, operation)
    if (!operation.sample) continue
    const source = withUrls(sample) + operation.sample
    Object.assign(object, { 'x-codeSamples': [{ lang: 'TypeScript', source }] })
  }
  Object.assign(document.components ?? {}, { schemas, headers: fixed.headers })
  // zod closes the schema of each output, but answers may gain fields.
  return JSON.stringify(document, (keyword, value) =>
    keyword === 'additionalProperties' && value === false ? undefined : value,
  )
}

const isLocal = (url: string) => /^https?:\/\/(localhost|127\.|\[::1\])/i.test(url)

const MORE_PAGES =
  'If there are more, the response has a `Link` header with `rel="next"`, the URL of the next page.'

/** Corrects the part of a generated document that describes an operation, and returns it. */
function correct({ paths }: OpenAPIObject, schemas: Schemas, operation: Operation) {
  const { name, path, method, input, description, isPaged, creates, takesKey } = operation
  const object = paths?.[path]?.[method.toLowerCase() as 'get']
  if (!object) throw new TypeError(`${method} ${path} is missing in the generated document`)
  const output = object.responses?.[200]?.content?.['application/json']?.schema
  object.operationId = name
  // The sentences about headers belong to REST alone: tRPC's clients show the description.
  const key = `With an \`Idempotency-Key\` a request can be repeated safely: the repetition ${creates ? 'adds' : 'changes'} nothing and returns the first response.`
  const sentences = [description, isPaged && MORE_PAGES, takesKey && key]
  object.description = sentences.filter(Boolean).join(' ')
  object.responses = responsesOf(operation, output)
  // The generator writes the schemas of parameters and bodies inline.
  for (const parameter of (object.parameters ?? []) as { schema: { description?: string } }[]) {
    // Programs that show the document expect the description in the parameter, not in its schema.
    const { description, ...schema } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description, schema })
  }
  if (takesKey) object.parameters = [...(object.parameters ?? []), idempotencyParameter]
  const body = object.requestBody as { content: Record<string, { schema: Schemas[string] }> }
  delete object.requestBody
  if (!operation.readsBody) return object
  const schema = body.content['application/json']?.schema ?? {}
  const id = input.meta()?.id
  const { exampleInput } = operation
  if (!id || !exampleInput)
    throw new TypeError(`The body of ${name} needs an id and an exampleInput`)
  if (schemas[id] && JSON.stringify(schemas[id]) !== JSON.stringify(schema))
    throw new TypeError(`There are two different schemas with the name ${id}`)
  schemas[id] = schema
  const content = { schema: { $ref: `#/components/schemas/${id}` }, example: exampleInput }
  object.requestBody = { required: true, content: { 'application/json': content } }
  return object
}
