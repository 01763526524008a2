/** The REST surface: operations by path and method, with inputs in path, query and JSON body. */
import { parse as parseQuery } from 'node:querystring'
import { methodNotSupported, problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { emptyHeaders, jsonHeaders, listOf } from '../../http/headers.ts'
import { runOf } from '../invoke.ts'
import type { Match, Surface } from '../pipeline.ts'
import { parseJson } from './json.ts'
import { deprecationHeaders, linksOf } from './links.ts'
import type { Operation } from './operations.ts'
import { matcher } from './routes.ts'

const PREFIX = '/v1'

/** Returns the surface of these operations below `/v1`. `baseUrl` is the public URL of `/v1`, for links. */
export function restSurface(operations: Operation[], baseUrl: string): Surface {
  const find = matcher(
    operations.map((operation) => ({
      path: operation.path,
      method: operation.method,
      handler: matcherOf(operation, baseUrl),
    })),
  )
  return {
    name: 'rest',
    prefix: PREFIX,
    unmatched: undefined,
    headers: jsonHeaders,
    match({ method }, { path, query }) {
      const found = find(path)
      if (!found) return undefined
      const match = found.methods.get(method ?? '')
      if (!match) throw methodNotSupported(method ?? '', found.allow)
      return match(found.inPath, query)
    },
    encodeError: errorText,
  }
}

const errorText = (error: Problem) => JSON.stringify(error.body)

/** Returns the function that matches a request by the texts of its path's parameters, and its query. */
function matcherOf(operation: Operation, baseUrl: string) {
  const { name, path, procedure, type, status, write, deprecated } = operation
  const deprecation = deprecated ? listOf(deprecationHeaders(deprecated, baseUrl)) : []
  const headers = [...jsonHeaders, ...deprecation]
  const successHeaders = status === 204 ? [...emptyHeaders, ...deprecation] : headers
  const linksTo = linksOf(operation, baseUrl)
  const run = runOf(name, procedure)
  const fixed = {
    operation: name,
    route: PREFIX + path,
    calls: 1,
    type,
    readsBody: operation.readBody !== undefined,
    headers,
  }
  return (inPath: string[], query: string): Match => ({
    ...fixed,
    async reply(context, body) {
      const input = readInput(operation, inPath, query, body)
      const output = await run(context, input)
      const links = linksTo(input, output, context.page.next)
      return {
        status,
        headers: links.length > 0 ? [...successHeaders, ...links] : successHeaders,
        body: status === 204 ? '' : JSON.stringify(write(output)),
      }
    },
  })
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
    const message = `${name} must be percent-encoded UTF-8`
    throw new Problem('BAD_REQUEST', message, { cause: new TypeError(message, { cause }) })
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
