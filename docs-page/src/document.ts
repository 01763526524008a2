/** The OpenAPI document as the docs page reads it: what this service's documents have, no more. */

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
  const?: unknown
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
  oneOf?: Schema[]
}

/** What is sent, by its type, of which there is one. */
export type Content = Record<
  string,
  { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
>

export interface Response {
  description: string
  /** References to the components of the same names. */
  headers: Record<string, unknown>
  content?: Content
}

/** A parameter, or a field of an object. */
export interface Parameter {
  /** Where it is sent; undefined for what is in a body. */
  in?: string
  name: string
  required?: boolean
  description?: string
  schema: Schema
}

export interface OperationObject {
  operationId: string
  summary: string
  description: string
  tags: string[]
  deprecated?: boolean
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, Response>
}

export interface OpenApi {
  info: { title: string; version: string; description: string; license: { name: string } }
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, { description: string; example: unknown }>
    securitySchemes: Record<string, { type: string; scheme: string; description: string }>
  }
}

/** Reads the text of a document; its numbers keep their digits, and `JSON.stringify` gives them back. */
export const readDocument = (text: string): OpenApi =>
  // The service made it itself, so its form is known.
  JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? JSON.rawJSON(String(context?.source)) : value,
  ) as OpenApi

export const toJson = (value: unknown): string => JSON.stringify(value, null, 2)

/** A value as it stands in a line: a text without quotes, anything else as JSON. */
export const inline = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** The last part of a reference: the name of the component. */
export const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1)

/** What a schema says, with what it refers to; what stands beside `$ref` counts more. */
export const resolve = (document: OpenApi, schema: Schema): Schema =>
  schema.$ref === undefined
    ? schema
    : { ...document.components.schemas[nameOf(schema.$ref)], ...schema }
