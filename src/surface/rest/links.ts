/** The headers with URLs: `Location` of a new resource, `Link` to the next page, and those of a deprecation. */
import type { Deprecation } from '../../procedure/rest-meta.ts'
import type { Operation } from './operations.ts'
import { filled } from './routes.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the headers of one response: names and values in turn. `input` is the parsed request before
 * its validation; `next` is the cursor of the next page, if there is one.
 */
type Links = (input: Fields, output: unknown, next?: unknown) => string[]

/**
 * Returns the function for an operation's headers: `Location` (RFC 9110, section 10.2.2) if it creates a
 * resource, `Link` (RFC 8288) if it returns pages. `baseUrl` is the public URL of `/v1`.
 */
export function linksOf(
  { creates, paged, path, queryParameters }: Operation,
  baseUrl: string,
): Links {
  if (creates !== undefined) {
    return (input, output) => {
      const fields = output as Fields // `operationsOf` checks that the output has the fields
      return ['Location', baseUrl + filled(creates, (name) => textOf(fields[name] ?? input[name]))]
    }
  }
  if (!paged) return () => []
  return (input, _output, next) => {
    if (next === undefined) return []
    const query = new URLSearchParams()
    for (const name of queryParameters.keys()) {
      const value = name === 'cursor' ? next : input[name]
      if (value !== undefined) query.set(name, textOf(value))
    }
    const url = `${baseUrl}${filled(path, (name) => textOf(input[name]))}?${query}`
    return ['Link', `<${url}>; rel="next"`]
  }
}

/** Returns a value as `readText` reads it. */
const textOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))

/** Returns the headers of every response of a deprecated operation: RFC 9745, RFC 8594 and RFC 5829. */
export const deprecationHeaders = ({ since, sunset, successor }: Deprecation, baseUrl: string) => ({
  Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
  Sunset: sunset.toUTCString(),
  Link: `<${baseUrl}${successor}>; rel="successor-version"`,
})
