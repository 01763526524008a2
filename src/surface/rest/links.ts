/** The headers of a success that lead on: where what was made is found, and where the next page is. */
import { type ParsedUrlQueryInput, stringify as stringifyQuery } from 'node:querystring'
import type { Operation } from './operations.ts'
import { segmentsOf } from './routes.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Makes the headers of one success, as a list of names and values, from the input as it was read from
 * the request, the output, and the cursor of the next page, if there is one.
 */
export type Links = (input: Fields, output: unknown, next?: unknown) => string[]

const none: Links = () => []

/**
 * What makes the headers of an operation: `Location` (RFC 9110, section 10.2.2) where it creates
 * something, `Link` (RFC 8288) where it gives pages. `baseUrl` is the public address of `/v1`.
 */
export function linksOf(
  { creates, paged, path, queryParameters }: Operation,
  baseUrl: string,
): Links {
  if (creates !== undefined) {
    const location = filler(creates)
    return (input, output) => {
      const fields = output as Fields // an operation that creates has an object as its output
      return ['Location', baseUrl + location((name) => fields[name] ?? input[name])]
    }
  }
  if (!paged) return none
  const list = filler(path)
  const names = [...queryParameters.keys()]
  return (input, _output, next) => {
    if (next === undefined) return []
    // The next page's query is that of this one, apart from the cursor.
    const values = names.map((name) => [name, name === 'cursor' ? next : input[name]])
    const sent = values.filter(([, value]) => value !== undefined)
    const query: ParsedUrlQueryInput = Object.fromEntries(
      sent.map(([name, value]) => [name, Array.isArray(value) ? value.map(textOf) : textOf(value)]),
    )
    return [
      'Link',
      `<${baseUrl}${list((name) => input[name])}?${stringifyQuery(query)}>; rel="next"`,
    ]
  }
}

type Values = (parameter: string) => unknown

/** A function that fills in a path template, percent-encoded, from the values of its parameters. */
function filler(path: string): (values: Values) => string {
  const parts = segmentsOf(path).map((segment) => {
    if ('parameter' in segment) {
      return (values: Values) => encodeURIComponent(textOf(values(segment.parameter)))
    }
    // A template may have characters that a header cannot hold, and may have them encoded.
    const literal = encodeURI(segment.literal).replaceAll('%25', '%')
    return () => literal
  })
  return (values) => parts.map((part) => part(values)).join('/')
}

/** A value as an address has it, and as the codec reads it; half of a surrogate pair has no encoding. */
const textOf = (value: unknown): string =>
  value instanceof Date ? value.toISOString() : String(value).toWellFormed()
