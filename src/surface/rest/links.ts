/**
 * The headers with URLs: `Location` of a new resource, `Link` to the next page, and those of a
 * deprecated operation.
 */
import type { Deprecation } from '../../procedure/rest-meta.ts'
import type { Operation } from './operations.ts'
import { segmentsOf } from './routes.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the headers of one response: names and values in turn. `input` is the parsed request before
 * its validation; `next` is the cursor of the next page, if there is one.
 */
export type Links = (input: Fields, output: unknown, next?: unknown) => string[]

const none: Links = () => []

/**
 * Returns the function for an operation's headers: `Location` (RFC 9110, section 10.2.2) if it creates a
 * resource, `Link` (RFC 8288) if it returns pages. `baseUrl` is the public URL of `/v1`.
 */
export function linksOf(
  { creates, paged, path, queryParameters }: Operation,
  baseUrl: string,
): Links {
  if (creates !== undefined) {
    const location = filler(creates)
    return (input, output) => {
      const fields = output as Fields // `operationsOf` checks that the output has the fields
      return ['Location', baseUrl + location((name) => fields[name] ?? input[name])]
    }
  }
  if (!paged) return none
  const list = filler(path)
  const names = [...queryParameters.keys()]
  return (input, _output, next) => {
    if (next === undefined) return []
    // The query of the next page differs only in the cursor.
    const query = names.flatMap((name) => {
      const values = name === 'cursor' ? [next] : [input[name] ?? []].flat()
      return values.map((value) => `${encodeURIComponent(name)}=${encode(value)}`)
    })
    const url = `${baseUrl}${list((name) => input[name])}?${query.join('&')}`
    return ['Link', `<${url}>; rel="next"`]
  }
}

type Values = (parameter: string) => unknown

/** Returns a function that fills in a path template with percent-encoded values of its parameters. */
function filler(path: string): (values: Values) => string {
  const parts = segmentsOf(path).map((segment) => {
    if ('parameter' in segment) {
      return (values: Values) => encode(values(segment.parameter))
    }
    // A template may have characters that are invalid in a header, plain or already percent-encoded.
    const literal = encodeURI(segment.literal).replaceAll('%25', '%')
    return () => literal
  })
  return (values) => parts.map((part) => part(values)).join('/')
}

/** Returns a value as `readText` reads it. An unpaired surrogate has no percent-encoding. */
const encode = (value: unknown): string =>
  encodeURIComponent(value instanceof Date ? value.toISOString() : String(value).toWellFormed())

/** Returns the headers of every response of a deprecated operation: RFC 9745, RFC 8594 and RFC 5829. */
export const deprecationHeaders = ({ since, sunset, successor }: Deprecation, baseUrl: string) => ({
  Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
  Sunset: sunset.toUTCString(),
  // A successor has no parameters.
  Link: `<${baseUrl}${filler(successor)(() => '')}>; rel="successor-version"`,
})
