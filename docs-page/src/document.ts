/** An OpenAPI 3.1 document as the docs page reads it: each part may be missing, or be a reference. */

import { uniqueIds } from './ids.ts'

/** A number with the digits that the document has: int64 is greater than a JavaScript number. */
export interface Digits {
  rawJSON: string
}

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  title?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  pattern?: string
  multipleOf?: Digits
  minimum?: Digits
  maximum?: Digits
  exclusiveMinimum?: Digits
  exclusiveMaximum?: Digits
  minLength?: Digits
  maxLength?: Digits
  minItems?: Digits
  maxItems?: Digits
  uniqueItems?: boolean
  readOnly?: boolean
  writeOnly?: boolean
  deprecated?: boolean
  example?: unknown
  examples?: unknown[]
  items?: SchemaPart
  prefixItems?: SchemaPart[]
  properties?: Record<string, SchemaPart>
  additionalProperties?: SchemaPart
  required?: string[]
  allOf?: SchemaPart[]
  anyOf?: SchemaPart[]
  oneOf?: SchemaPart[]
}

/** `true` allows every value, `false` none (JSON Schema 2020-12, section 4.3.2). */
export type SchemaPart = Schema | boolean

interface Reference {
  $ref?: string
}

export interface MediaType {
  schema?: SchemaPart
  example?: unknown
  examples?: Record<string, Reference & { summary?: string; value?: unknown }>
}

/** Forms of a body, by their media types. */
export type Content = Record<string, MediaType>

export interface Header extends Reference, MediaType {
  description?: string
}

export interface Response extends Reference {
  description?: string
  headers?: Record<string, Header>
  content?: Content
}

/** A parameter, or a field of an object. */
export interface Parameter extends Reference {
  /** Where it is sent; undefined for a field of a body. */
  in?: string
  name: string
  required?: boolean
  deprecated?: boolean
  description?: string
  schema?: SchemaPart
  content?: Content
  example?: unknown
}

export interface RequestBody extends Reference {
  description?: string
  required?: boolean
  content?: Content
}

/** The names of security schemes that a request needs together. */
type Requirement = Record<string, unknown>

export interface OperationObject {
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
  deprecated?: boolean
  security?: Requirement[]
  parameters?: Parameter[]
  requestBody?: RequestBody
  responses?: Record<string, Response>
  /** Samples in other languages (https://redocly.com/docs-legacy/api-reference-docs/specification-extensions/x-code-samples). */
  'x-codeSamples'?: { lang: string; label?: string; source: string }[]
}

export interface SecurityScheme extends Reference {
  type?: string
  scheme?: string
  in?: string
  name?: string
  description?: string
}

interface PathItem extends Reference {
  parameters?: Parameter[]
  [method: string]: unknown
}

export interface OpenApi {
  info: { title: string; version: string; description?: string; license?: { name: string } }
  servers?: { url: string; description?: string }[]
  tags?: { name: string; description?: string }[]
  security?: Requirement[]
  paths?: Record<string, PathItem>
  components?: {
    schemas?: Record<string, SchemaPart>
    headers?: Record<string, Header>
    securitySchemes?: Record<string, SecurityScheme>
  }
}

/** Reads the text of a document; its numbers keep their digits, which `JSON.stringify` writes again. */
export const readDocument = (text: string): OpenApi =>
  // What is missing is handled; a document of another form is the operator's mistake.
  JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? JSON.rawJSON(String(context?.source)) : value,
  ) as OpenApi

export const toJson = (value: unknown): string => JSON.stringify(value, null, 2)

/** An example as it is sent: a text without quotes, anything else as JSON on many lines. */
export const exampleText = (value: unknown): string =>
  typeof value === 'string' ? value : toJson(value)

/** A value as it stands in a line: a text without quotes, anything else as JSON. */
export const inline = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** The last part of a reference: the name of the component. */
export const nameOf = (ref: string): string => decode(ref.slice(ref.lastIndexOf('/') + 1))

/** The name of the schema component that a reference points to; undefined for any other reference. */
export const schemaNameOf = ({ $ref }: Reference): string | undefined =>
  $ref && /^#\/components\/schemas\/[^/]+$/.test($ref) ? nameOf($ref) : undefined

// RFC 6901, section 6
const decode = (part: string) =>
  decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')

/** The longest chain of references that is followed: a chain without an end has no meaning. */
const MAX_REFERENCES = 20

/** A part of the document with what it refers to; what stands beside `$ref` counts more. */
export function resolve<Part extends Reference>(document: OpenApi, part: Part): Part {
  let resolved = part
  for (let step = 0; resolved.$ref?.startsWith('#/') && step < MAX_REFERENCES; step++) {
    const { $ref, ...beside } = resolved
    const names = $ref.slice(2).split('/').map(decode)
    const target = names.reduce<unknown>(
      (at, name) => (at as Record<string, unknown> | undefined)?.[name],
      document,
    )
    resolved = { ...(target as Part), ...beside } as Part
  }
  return resolved
}

/** How deep schemas in schemas are followed. */
const MAX_DEPTH = 8

/** A schema with what it refers to, and the parts of `allOf` merged into it. */
export function schemaOf(document: OpenApi, part: SchemaPart | undefined, depth = 0): Schema {
  if (part === undefined || typeof part === 'boolean') return {}
  const { allOf, ...schema } = resolve(document, part)
  if (!allOf || depth > MAX_DEPTH) return schema
  const parts = [...allOf.map((one) => schemaOf(document, one, depth + 1)), schema]
  const properties = Object.assign({}, ...parts.map((one) => one.properties))
  const required = parts.flatMap((one) => one.required ?? [])
  const merged: Schema = Object.assign({}, ...parts)
  if (Object.keys(properties).length > 0) merged.properties = properties
  if (required.length > 0) merged.required = required
  return merged
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace']

/** An operation with everything that the document says of it elsewhere. */
export interface Operation {
  /** Its operationId, or one made of its method and path. */
  id: string
  method: string
  path: string
  object: OperationObject
  parameters: Parameter[]
  body: RequestBody | undefined
  responses: [status: string, response: Response][]
  /** How its API key is sent; undefined where it needs none. */
  key: SecurityScheme | undefined
}

/** Every operation of a document, in its order. */
export function operationsOf(document: OpenApi): Operation[] {
  const idOf = uniqueIds()
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) => {
    const { parameters = [], ...methods } = resolve(document, item)
    return METHODS.filter((method) => methods[method]).map((method) => {
      const object = methods[method] as OperationObject
      const operation = operationOf(document, method.toUpperCase(), path, object, parameters)
      return { ...operation, id: idOf(operation.id) }
    })
  })
}

function operationOf(
  document: OpenApi,
  method: string,
  path: string,
  object: OperationObject,
  shared: Parameter[],
): Operation {
  const all = [...shared, ...(object.parameters ?? [])].map((one) => resolve(document, one))
  // Those of the operation replace those of its path.
  const parameters = new Map(all.map((one) => [`${one.in} ${one.name}`, one]))
  const responses = Object.entries(object.responses ?? {})
  const [requirement = {}] = object.security ?? document.security ?? []
  const [scheme] = Object.keys(requirement)
  return {
    id: object.operationId ?? `${method}${path}`.replaceAll(/[^A-Za-z0-9]+/g, '-'),
    method,
    path,
    object,
    parameters: [...parameters.values()],
    body: object.requestBody && resolve(document, object.requestBody),
    responses: responses.map(([status, response]) => [status, resolve(document, response)]),
    key:
      scheme === undefined
        ? undefined
        : resolve(document, document.components?.securitySchemes?.[scheme] ?? {}),
  }
}

/** The schema of a parameter, wherever that stands. */
export const schemaOfParameter = ({ schema, content }: Parameter): SchemaPart =>
  schema ?? Object.values(content ?? {})[0]?.schema ?? {}

/** The examples of a body, of the first of its media types. */
export function examplesOf(document: OpenApi, content: Content = {}): unknown[] {
  const [media] = Object.values(content)
  if (!media) return []
  if (media.example !== undefined) return [media.example]
  const named = Object.values(media.examples ?? {}).map((each) => resolve(document, each).value)
  const values = named.filter((value) => value !== undefined)
  if (values.length > 0) return values
  const made = exampleOf(document, media.schema)
  return made === undefined ? [] : [made]
}

/** A value that a schema allows, made from what it says; undefined where it says nothing. */
export function exampleOf(
  document: OpenApi,
  part: SchemaPart | undefined,
  around: readonly string[] = [],
): unknown {
  const name = typeof part === 'object' ? schemaNameOf(part) : undefined
  if ((name !== undefined && around.includes(name)) || around.length > MAX_DEPTH) return undefined
  const schema = schemaOf(document, part)
  const { example, examples, enum: values } = schema
  const known = [example, examples?.[0], schema.const, schema.default, values?.[0]]
  const given = known.find((value) => value !== undefined)
  if (given !== undefined) return given
  const inner = (one: SchemaPart) => exampleOf(document, one, [...around, name ?? ''])
  const [choice] = schema.oneOf ?? schema.anyOf ?? []
  if (choice !== undefined && !schema.properties) return inner(choice)
  if (schema.properties) {
    const fields = Object.entries(schema.properties).map(([name, one]) => [name, inner(one)])
    return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
  }
  if (schema.items) return [inner(schema.items)].filter((item) => item !== undefined)
  const [type] = [schema.type ?? []].flat()
  return type === undefined ? undefined : samples[type]
}

const samples: Record<string, unknown> = {
  string: 'text',
  integer: 0,
  number: 0,
  boolean: true,
  object: {},
  null: null,
}
