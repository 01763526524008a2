/** The OpenAPI document of the service as the page reads it. */

/** A number with the digits that the document has: int64 is greater than a JavaScript number. */
export interface Digits {
  rawJSON: string
}

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  default?: unknown
  minimum?: Digits
  maximum?: Digits
  minLength?: Digits
  maxLength?: Digits
  minItems?: Digits
  maxItems?: Digits
  examples?: unknown[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
}

/** The forms of a body, by media type. */
type Content = Record<
  string,
  { schema?: Schema; example?: unknown; examples?: Record<string, { value?: unknown }> }
>

/** A parameter of an operation, or a field of an object: that has no `in`. */
export interface Parameter {
  in?: string
  name: string
  required?: boolean
  description?: string
  schema?: Schema
}

export interface Response {
  description?: string
  headers?: Record<string, object>
  content?: Content
}

export interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Response>
  /** Whether an operation with another method than GET changes nothing. */
  'x-safe'?: boolean
  /** https://redocly.com/docs-legacy/api-reference-docs/specification-extensions/x-code-samples */
  'x-codeSamples'?: { lang: string; source: string }[]
}

export interface OpenApi {
  info: { title: string; version: string; description?: string; license?: { name: string } }
  servers?: { url: string; description?: string }[]
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas?: Record<string, Schema>
    headers?: Record<string, { description?: string; example?: unknown }>
    securitySchemes?: Record<string, { description?: string }>
  }
}

/** Reads the JSON of a document; its numbers keep their digits, and `toJson` writes them again. */
export const readDocument = (text: string): OpenApi =>
  // The service makes this document, and its tests validate it.
  JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? JSON.rawJSON(String(context?.source)) : value,
  ) as OpenApi

export const toJson = (value: unknown): string => JSON.stringify(value, null, 2)

/** A value as it stands in a line: a text without quotes, anything else as JSON. */
export const inline = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** The name of the component that a schema refers to. */
export const nameOf = ({ $ref }: Schema): string | undefined => $ref?.split('/').at(-1)

/** A schema with what it refers to; what stands beside `$ref` counts more. */
export const schemaOf = ({ components }: OpenApi, schema: Schema = {}): Schema => ({
  ...components.schemas?.[nameOf(schema) ?? ''],
  ...schema,
})

/** An operation with its place in the document. */
export interface Route {
  method: string
  path: string
  operation: Operation
}

/** All operations, in the order of the document. */
export const routesOf = ({ paths }: OpenApi): Route[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )

/** The examples of a body. */
export const examplesOf = (content: Content = {}): unknown[] =>
  Object.values(content).flatMap(({ example, examples = {} }) =>
    example === undefined ? Object.values(examples).map(({ value }) => value) : [example],
  )
