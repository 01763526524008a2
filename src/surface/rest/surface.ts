/** The REST surface: routes by path and method, with inputs in path, query and JSON body. */
import { parse as parseQuery } from 'node:querystring'
import { methodNotSupported, Problem, problem } from '../../errors/problem.ts'
import type { Body } from '../../http/body.ts'
import type { CallsOfRequest } from '../../procedure/call.ts'
import type { Page } from '../../procedure/paging.ts'
import type { Answer, Match, Surface } from '../pipeline.ts'
import { replaceBigints } from './exact-json.ts'
import { parseJson } from './readers.ts'
import { type Part, partsOf, type Route } from './routes.ts'

interface RestMatch extends Match {
  route: Route
  /** The parameters of the path, percent-encoded and never empty. */
  inPath: string[]
  query: string
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the surface of these routes. */
export function restSurface(routes: Route[]): Surface<RestMatch> {
  const places = placesOf(routes)
  return {
    name: 'rest',
    match({ method = '' }, { path, query }) {
      for (const { pattern, methods } of places) {
        const found = pattern.exec(path)
        if (!found) continue
        const route = methods.get(method)
        if (!route) throw methodNotSupported(method, [...methods.keys()].join(', '))
        const { template, readsBody, headers } = route
        const { name, type, access } = route.operation
        const isPublic = access.isPublic === true
        const inPath = found.slice(1)
        // biome-ignore format: one line
        return { name, type, isPublic, template, count: 1, readsBody, headers, route, inPath, query }
      }
      return undefined
    },
    answer,
    encodeError: ({ body }) => JSON.stringify(body),
  }
}

/**
 * Returns the patterns of all paths, each with its routes by method. If several match a path, a
 * literal segment wins over a parameter (OpenAPI 3.1, Path Templating Matching).
 */
const placesOf = (routes: Route[]) =>
  [...Map.groupBy(routes, ({ template }) => template)]
    .sort(([one], [other]) => (one < other ? -1 : 1)) // `{` follows all letters and digits
    .map(([template, here]) => {
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const methodsOf = ({ method }: Route) => (method === 'GET' ? ['GET', 'HEAD'] : [method])
      const entries = here.flatMap((one) => methodsOf(one).map((method) => [method, one] as const))
      const parts = partsOf(template).map(({ name, text }) =>
        name === undefined ? RegExp.escape(text) : '([^/]+)',
      )
      return { pattern: new RegExp(`^${parts.join('')}$`), methods: new Map(entries) }
    })

async function answer(
  request: CallsOfRequest,
  match: RestMatch,
  body: Body | undefined,
): Promise<Answer> {
  const { route } = match
  const { operation, takesInput } = route
  // Read at once, because links need it, too. It has no unknown field, which may be large.
  const input = readFields(match, body)
  // By a function, as tRPC reads it: a procedure with middlewares reads its input late, and again for each schema.
  const output = await operation.run(request, () => (takesInput ? input : undefined))
  if (operation.isPaged) return answerWithPage(route, input, output as Page)
  if (route.locationParts) return answerWithLocation(route, input, output as Fields)
  const { status, headersOfSuccess: headers } = route
  return { status, headers, body: status === 204 ? '' : JSON.stringify(replaceBigints(output)) }
}

/** Adds the `Location` (RFC 9110, section 10.2.2). `routesOf` checks that the output or the path has its parameters. */
function answerWithLocation(route: Route, input: Fields, output: Fields): Answer {
  const { status, headersOfSuccess, locationParts = [], baseUrl } = route
  const location = baseUrl + pathOf(locationParts, input, output) // first: the output is changed then
  const headers = [...headersOfSuccess, 'Location', location]
  return { status, headers, body: JSON.stringify(replaceBigints(output)) }
}

/** Adds the `Link` (RFC 8288) to the next page. `input` is the request before its validation. */
function answerWithPage(route: Route, input: Fields, { items, next }: Page): Answer {
  const { status, headersOfSuccess: headers, pathParts, queryParameters, baseUrl } = route
  const body = JSON.stringify(replaceBigints(items))
  if (next === undefined) return { status, headers, body }
  let query = ''
  for (const { name } of queryParameters) {
    const value = name === 'cursor' ? next : input[name]
    for (const one of value === undefined ? [] : [value].flat())
      query += `${query && '&'}${encoded(name)}=${encoded(one)}`
  }
  const url = `${baseUrl}${pathOf(pathParts, input)}?${query}`
  return { status, headers: [...headers, 'Link', `<${url}>; rel="next"`], body }
}

/** Returns the path with these values of its parameters: those of the output before those of the input. */
const pathOf = (parts: Part[], input: Fields, output: Fields = {}): string =>
  parts
    .map(({ text, name }) => (name === undefined ? text : encoded(output[name] ?? input[name])))
    .join('')

function encoded(value: unknown): string {
  const text = value instanceof Date ? value.toISOString() : String(value)
  return encodeURIComponent(text.toWellFormed()) // an unpaired surrogate has no percent-encoding
}

/** Returns the input as it was read, unchecked: the fields of the body, the path and the query. */
function readFields(
  { route, inPath, query: queryText }: RestMatch,
  body: Body | undefined,
): Record<string, unknown> {
  const { readsBody, readValue, pathParameters, queryParameters } = route
  // The reader of an object returns an object. A parameter of the path wins over a field of the body.
  const input = (readsBody ? readValue(parseObject(body?.take())) : {}) as Record<string, unknown>
  let index = 0
  for (const { name, readText } of pathParameters) {
    input[name] = readText(decode(name, inPath[index++] as string)) // a match has all parameters
  }
  if (queryText !== '') readQuery(queryText, queryParameters, input)
  return input
}

/** Adds the parameters of a query to the input. */
function readQuery(
  text: string,
  parameters: Route['queryParameters'],
  input: Record<string, unknown>,
): void {
  const query = parseQuery(text, '&', '=', { maxKeys: 0 }) // no limit
  for (const { name, readText, isList } of parameters) {
    const value = query[name]
    if (value === undefined) continue
    if (isList) input[name] = [value].flat().map(readText)
    // Another parameter that is repeated stays a list, which its schema rejects.
    else input[name] = typeof value === 'string' ? readText(value) : value
  }
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
