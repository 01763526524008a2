/** The REST surface: operations by path and method, with inputs in path, query and JSON body. */
import { parse as parseQuery } from 'node:querystring'
import { methodNotSupported, Problem, problem } from '../../errors/problem.ts'
import type { Match, Surface } from '../pipeline.ts'
import { type Operation, PARAMETER } from './operations.ts'
import { parseJson, writable } from './values.ts'

interface RestMatch extends Match {
  operation: Operation
  /** The parameters of the path, percent-encoded and never empty. */
  inPath: string[]
  query: string
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the surface of these operations. */
export function restSurface(operations: Operation[]): Surface<RestMatch> {
  const places = placesOf(operations)
  return {
    name: 'rest',
    match({ method = '' }, { path, query }) {
      for (const { pattern, methods } of places) {
        const found = pattern.exec(path)
        if (!found) continue
        const operation = methods.get(method)
        if (!operation) throw methodNotSupported(method, [...methods.keys()].join(', '))
        return { operation, inPath: found.slice(1), query }
      }
      return undefined
    },
    async reply({ operation, inPath, query }, context, text) {
      const { status, headersOfSuccess: headers } = operation
      const input = readInput(operation, inPath, query, text)
      const output = await operation.run(context, input)
      const link = linkOf(operation, input, output, context.nextCursor)
      const body = status === 204 ? '' : JSON.stringify(writable(output))
      return { status, headers: link ? [...headers, ...link] : headers, body }
    },
    encodeError: ({ body }) => JSON.stringify(body),
  }
}

/**
 * Returns the patterns of all paths, each with its operations by method. If several match a path, a
 * literal segment wins over a parameter (OpenAPI 3.1, Path Templating Matching).
 */
const placesOf = (operations: Operation[]) =>
  [...Map.groupBy(operations, ({ route }) => route)]
    .sort(([one], [other]) => (one < other ? -1 : 1)) // `{` follows all letters and digits
    .map(([route, here]) => {
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const methodsOf = ({ method }: Operation) => (method === 'GET' ? ['GET', 'HEAD'] : [method])
      const entries = here.flatMap((one) => methodsOf(one).map((method) => [method, one] as const))
      // The names of the parameters are at the odd places.
      const parts = route
        .split(PARAMETER)
        .map((text, at) => (at % 2 ? '([^/]+)' : RegExp.escape(text)))
      return { pattern: new RegExp(`^${parts.join('')}$`), methods: new Map(entries) }
    })

function readInput(
  { readsBody, read, pathParameters, queryParameters }: Operation,
  inPath: string[],
  queryText: string,
  body: string | undefined,
): Record<string, unknown> {
  // The reader of an object returns an object. A parameter of the path wins over a field of the body.
  const input = (readsBody ? read(parseObject(body)) : {}) as Record<string, unknown>
  let index = 0
  for (const [name, readText] of pathParameters) {
    input[name] = readText(decode(name, inPath[index++] as string)) // a match has all parameters
  }
  if (queryText === '') return input
  const query = parseQuery(queryText, '&', '=', { maxKeys: 0 })
  for (const [name, readText] of queryParameters) {
    const text = query[name]
    // A repeated parameter stays a list, which its schema rejects.
    if (text !== undefined) input[name] = typeof text === 'string' ? readText(text) : text
  }
  return input
}

function decode(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new Problem('BAD_REQUEST', `${name} must be percent-encoded UTF-8`, { cause })
  }
}

function parseObject(text: string | undefined): object {
  if (!text) throw new Problem('BAD_REQUEST', 'The body is missing: it must be a JSON object')
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    throw problem('malformed', cause)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw problem('notAnObject')
}

/**
 * Returns the header with a URL, its name and its value: `Location` (RFC 9110, section 10.2.2) of a new
 * resource, or `Link` (RFC 8288) to the next page. `input` is the request before its validation.
 */
function linkOf(
  { locationTemplate, pathTemplate, queryParameters, baseUrl }: Operation,
  input: Fields,
  output: unknown,
  nextCursor: bigint | undefined,
): [name: string, value: string] | undefined {
  const encoded = (value: unknown) => {
    const text = value instanceof Date ? value.toISOString() : String(value)
    return encodeURIComponent(text.toWellFormed()) // an unpaired surrogate has no percent-encoding
  }
  // `operationsOf` checks that the output or the path has the parameters.
  const urlOf = (template: string[], fields: Fields) =>
    template.reduce(
      (url, part, at) => url + (at % 2 ? encoded(fields[part] ?? input[part]) : part),
      baseUrl,
    )
  if (locationTemplate) return ['Location', urlOf(locationTemplate, output as Fields)]
  if (nextCursor === undefined) return undefined
  let query = ''
  for (const [name] of queryParameters) {
    const value = name === 'cursor' ? nextCursor : input[name]
    if (value !== undefined) query += `${query && '&'}${encoded(name)}=${encoded(value)}`
  }
  return ['Link', `<${urlOf(pathTemplate, input)}?${query}>; rel="next"`]
}
