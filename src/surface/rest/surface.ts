/** The REST surface: operations by path and method, with inputs in path, query and JSON body. */
import { parse as parseQuery } from 'node:querystring'
import { methodNotSupported, problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { emptyHeaders, jsonHeaders } from '../../http/headers.ts'
import type { Match, Surface } from '../pipeline.ts'
import { parseJson } from './json.ts'
import { deprecationHeaders, linksTo } from './links.ts'
import type { Operation } from './operations.ts'
import { matcher } from './routes.ts'

const PREFIX = '/v1'

interface RestMatch extends Match {
  operation: Served
  /** The parameters of the path, percent-encoded. */
  inPath: string[]
  query: string
}

type Served = ReturnType<typeof served>

/** Returns an operation with what the pipeline and its answers need, which is made once. */
function served(operation: Operation, baseUrl: string) {
  const { path, readBody, status, deprecated } = operation
  const deprecation = deprecated ? deprecationHeaders(deprecated, baseUrl) : []
  return {
    ...operation,
    route: PREFIX + path,
    calls: 1,
    readsBody: readBody !== undefined,
    headers: [...jsonHeaders, ...deprecation],
    headersOfSuccess: [...(status === 204 ? emptyHeaders : jsonHeaders), ...deprecation],
  }
}

/** Returns the surface of these operations below `/v1`. `baseUrl` is the public URL of `/v1`, for links. */
export function restSurface(operations: Operation[], baseUrl: string): Surface<RestMatch> {
  const find = matcher(operations.map((operation) => served(operation, baseUrl)))
  return {
    name: 'rest',
    prefix: PREFIX,
    unmatched: undefined,
    headers: jsonHeaders,
    match({ method = '' }, { path, query }) {
      const place = find(path)
      if (!place) return undefined
      const { methods, inPath } = place
      const operation = methods.get(method)
      if (!operation) throw methodNotSupported(method, [...methods.keys()].join(', '))
      return { operation, inPath, query }
    },
    async reply({ operation, inPath, query }, context, text) {
      const { status, headersOfSuccess: headers, write } = operation
      const input = readInput(operation, inPath, query, text)
      const output = await operation.run(context, input)
      const links = linksTo(operation, baseUrl, input, output, context.nextCursor)
      const body = status === 204 ? '' : JSON.stringify(write(output))
      return { status, headers: links.length > 0 ? [...headers, ...links] : headers, body }
    },
    encodeError: ({ body }) => JSON.stringify(body),
  }
}

function readInput(
  { readBody, pathParameters, queryParameters }: Operation,
  inPath: string[],
  queryText: string,
  body: string | undefined,
): Record<string, unknown> {
  // The reader of an object returns an object.
  const input = (readBody?.(parseObject(body)) ?? {}) as Record<string, unknown>
  let index = 0
  for (const [name, read] of pathParameters) {
    input[name] = read(decode(name, inPath[index++] as string)) // a match has all parameters
  }
  if (queryText === '') return input
  const query = parseQuery(queryText, '&', '=', { maxKeys: 0 })
  for (const [name, read] of queryParameters) {
    const text = query[name]
    // A repeated parameter stays a list, which its schema rejects.
    if (text !== undefined) input[name] = typeof text === 'string' ? read(text) : text
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

/** The message of 400 for a body that is JSON, but no object. */
export const NOT_AN_OBJECT = 'The body must be a JSON object'

function parseObject(text: string | undefined): object {
  if (!text) throw new Problem('BAD_REQUEST', 'The body is missing: it must be a JSON object')
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    throw problem('malformed', cause)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new Problem('BAD_REQUEST', NOT_AN_OBJECT)
}
