/** The headers with URLs: `Location` of a new resource, and `Link` to the next page. */
import type { Operation } from './operations.ts'
import { filled } from './routes.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the headers of one response, names and values in turn: `Location` (RFC 9110, section 10.2.2) of
 * a new resource, `Link` (RFC 8288) if there is a next page. `input` is the request before its validation.
 */
export function linksTo(
  { creates, path, queryParameters, baseUrl }: Operation,
  input: Fields,
  output: unknown,
  nextCursor: bigint | undefined,
): string[] {
  const urlOf = (path: string, fields: Fields) =>
    baseUrl + filled(path, (name) => textOf(fields[name] ?? input[name]))
  // `operationsOf` checks that the output or the path has the parameters.
  if (creates) return ['Location', urlOf(creates, output as Fields)]
  if (nextCursor === undefined) return []
  const query = new URLSearchParams()
  for (const [name] of queryParameters) {
    const value = name === 'cursor' ? nextCursor : input[name]
    if (value !== undefined) query.set(name, textOf(value))
  }
  return ['Link', `<${urlOf(path, input)}?${query}>; rel="next"`]
}

/** Returns a value as `readText` reads it. */
const textOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))
