/** REST: what it has of its own in the pipeline. */
import {
  type ParsedUrlQuery,
  parse as parseQuery,
  stringify as stringifyQuery,
} from 'node:querystring'
import { malformed, methodNotSupported, Problem, toApiError } from '../../errors.ts'
import { allowOf } from '../../http/answer.ts'
import { jsonHeaders, privateHeaders } from '../../http/headers.ts'
import { parseJson } from '../../rest/codec.ts'
import type { Operation } from '../../rest/operations.ts'
import type { Context } from '../../trpc.ts'
import type { Match, Surface } from '../pipeline.ts'
import { runOf } from '../run.ts'

/** What is served at one path: what matches a request by its method, and what `Allow` says. */
interface Place {
  pattern: RegExp
  allow: string
  matchers: Record<string, Matcher>
}
type Matcher = (inPath: string[], query: string) => Match

/** The operations below `/v1`. `baseUrl` is the public URL of `/v1`, for the links. */
export function restSurface(operations: Operation[], baseUrl: string): Surface {
  const places = placesOf(operations, baseUrl)
  return {
    name: 'rest',
    prefix: PREFIX,
    unmatched: undefined,
    headers: jsonHeaders,
    match({ method }, { path, query }) {
      for (const { pattern, allow, matchers } of places) {
        const [matched, ...inPath] = pattern.exec(path) ?? []
        if (matched === undefined) continue
        const match = matchers[method]
        if (!match) throw methodNotSupported(method, allow)
        return match(inPath, query)
      }
      return undefined
    },
    encodeError: errorText,
  }
}

const PREFIX = '/v1'

const errorText = (error: Problem) => JSON.stringify(toApiError(error))

function placesOf(operations: Operation[], baseUrl: string): Place[] {
  return [...Map.groupBy(operations, ({ path }) => path)].map(([path, here]) => {
    const matchers = Object.fromEntries(
      here.map((operation) => [operation.method, matcherOf(operation, baseUrl)]),
    )
    // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http leaves out.
    if (matchers.GET) matchers.HEAD = matchers.GET
    return {
      // Braces are all that a template has beside plain text.
      pattern: new RegExp(
        `^${path.replaceAll(/[.*+?^$()[\]|\\]/g, '\\$&').replaceAll(/\{.+?\}/g, '([^/]+)')}$`,
      ),
      allow: allowOf(here.map(({ method }) => method)),
      matchers,
    }
  })
}

function matcherOf(operation: Operation, baseUrl: string): Matcher {
  const { name, path, procedure, status, write } = operation
  const headers = [...privateHeaders, ...deprecationHeaders(operation, baseUrl)]
  const fixed = {
    operation: name,
    route: PREFIX + path,
    calls: [{ name, run: runOf(name, procedure) }],
    type: procedure._def.type as 'query' | 'mutation', // there are no subscriptions
    readsBody: operation.readBody !== undefined,
    headers,
  }
  return (inPath, queryText) => {
    const query = queryText === '' ? undefined : parseQuery(queryText, '&', '=', { maxKeys: 0 })
    return {
      ...fixed,
      decode: (body) => () => readInput(operation, inPath, query, body),
      encode([outcome], context) {
        if (outcome?.error) {
          const { error } = outcome
          return {
            status: error.status,
            headers: [...headers, ...error.headers],
            body: errorText(error),
          }
        }
        const more = linkHeaders(operation, baseUrl, outcome?.output, context, query)
        return {
          status,
          headers: more ? [...headers, ...more] : headers,
          body: status === 204 ? '' : write(outcome?.output),
        }
      },
    }
  }
}

function readInput(
  operation: Operation,
  inPath: string[],
  query: ParsedUrlQuery | undefined,
  body: string | undefined,
): Record<string, unknown> {
  const input = operation.readBody ? readObject(operation, body) : {}
  let index = 0
  for (const [name, read] of operation.pathParameters) {
    input[name] = read(decode(name, inPath[index++] as string)) // the pattern has as many groups
  }
  if (query === undefined) return input
  for (const [name, read] of operation.queryParameters) {
    const value = read(query[name])
    if (value !== undefined) input[name] = value
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

function readObject({ readBody }: Operation, text: string | undefined): Record<string, unknown> {
  if (!text) throw badBody('The body is missing: it must be a JSON object')
  const value = parseBody(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badBody('The body must be a JSON object')
  }
  return readBody?.(value) as Record<string, unknown> // the reader of an object gives one
}

function parseBody(text: string): unknown {
  try {
    return parseJson(text)
  } catch (cause) {
    throw malformed(cause)
  }
}

const badBody = (message: string) => new Problem('BAD_REQUEST', message)

/**
 * Headers of every answer of a deprecated operation: since when (RFC 9745), until when (RFC 8594),
 * and what to use instead (RFC 5829).
 */
function deprecationHeaders({ deprecated }: Operation, baseUrl: string): string[] {
  if (!deprecated) return []
  const { since, sunset, successor } = deprecated
  return [
    'Deprecation',
    `@${since.getTime() / 1000}`,
    'Sunset',
    sunset.toUTCString(),
    'Link',
    `<${baseUrl}${successor}>; rel="successor-version"`,
  ]
}

/** Headers of a success: where what was made is found, where the next page is (RFC 8288). */
function linkHeaders(
  { creates, paged, path, queryParameters }: Operation,
  baseUrl: string,
  output: unknown,
  { page: { next } }: Context,
  query: ParsedUrlQuery = {},
): string[] | undefined {
  if (creates !== undefined) {
    const fields = output as Record<string, unknown>
    return [
      'Location',
      baseUrl +
        creates.replaceAll(/\{(.+?)\}/g, (_, field) => encodeURIComponent(String(fields[field]))),
    ]
  }
  if (!paged || next === undefined) return undefined
  // The next page's query is that of this one, apart from the cursor.
  const parameters: ParsedUrlQuery = {}
  for (const name of queryParameters.keys()) {
    const value = name === 'cursor' ? String(next) : query[name]
    if (value !== undefined) parameters[name] = value
  }
  return ['Link', `<${baseUrl}${path}?${stringifyQuery(parameters)}>; rel="next"`]
}
