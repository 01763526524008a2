/** The REST surface: operations by path and method, with inputs in path, query and JSON body. */
import { parse as parseQuery } from 'node:querystring'
import { methodNotSupported, problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import type { Match, Surface } from '../pipeline.ts'
import { parseJson } from './json.ts'
import { linksTo } from './links.ts'
import { type Operation, PREFIX } from './operations.ts'
import { matcher } from './routes.ts'

interface RestMatch extends Match {
  operation: Operation
  /** The parameters of the path, percent-encoded. */
  inPath: string[]
  query: string
}

/** Returns the surface of these operations. */
export function restSurface(operations: Operation[]): Surface<RestMatch> {
  const find = matcher(operations)
  return {
    name: 'rest',
    prefix: PREFIX,
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
      const links = linksTo(operation, input, output, context.nextCursor)
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
