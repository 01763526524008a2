/** The request of an operation as `docs.js` would make it from an empty form. */
import { type Call, type Key, languages } from '../assets/samples.js'
import {
  exampleOf,
  examplesOf,
  exampleText,
  inline,
  type OpenApi,
  type Operation,
  type Parameter,
  type SecurityScheme,
  schemaOfParameter,
} from './document.ts'

/** A value for a parameter: its example, or one that its schema allows; empty where there is none. */
export const exampleOfParameter = (document: OpenApi, parameter: Parameter): string =>
  inline(parameter.example ?? exampleOf(document, schemaOfParameter(parameter)) ?? '')

/** The text of a body's example, and its media type. */
export function bodyOf(
  document: OpenApi,
  { body }: Operation,
): { type: string; text: string } | undefined {
  const [type] = Object.keys(body?.content ?? {})
  if (type === undefined) return undefined
  const [example] = examplesOf(document, body?.content)
  return {
    type,
    text: example === undefined ? '' : exampleText(example),
  }
}

/** Where a request has the API key of a security scheme, and what stands before it. */
export function keyOf({ type, scheme, in: place, name = '' }: SecurityScheme): Key {
  if (type !== 'apiKey') {
    const prefix = scheme?.toLowerCase() === 'basic' ? 'Basic ' : 'Bearer '
    return { in: 'header', name: 'Authorization', prefix }
  }
  if (place === 'cookie') return { in: 'header', name: 'Cookie', prefix: `${name}=` }
  return { in: place === 'query' ? 'query' : 'header', name, prefix: '' }
}

/** The request of an operation as a command, with examples for what must be there. */
export function curlOf(document: OpenApi, operation: Operation): string {
  const { method, parameters, key } = operation
  const sent = (place: string): [string, string][] =>
    parameters
      .filter((parameter) => parameter.in === place && parameter.required)
      .map((parameter) => [parameter.name, exampleOfParameter(document, parameter)])
  let path = operation.path
  for (const [name, value] of sent('path')) {
    path = path.replace(`{${name}}`, encodeURIComponent(value))
  }
  const query = new URLSearchParams(sent('query')).toString()
  const headers = sent('header')
  const body = bodyOf(document, operation)
  if (body) headers.push(['Content-Type', body.type])
  const url = (document.servers?.[0]?.url ?? '') + path + (query && `?${query}`)
  const call: Call = { method, url, key: key && keyOf(key), headers, body: body?.text }
  return languages.curl(call)
}
