/** The headers `Location` and `Link` of a successful response: the new resource, and the next page. */
import { type ParsedUrlQueryInput, stringify as stringifyQuery } from 'node:querystring'
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

/** Returns a function that fills in a path template with percent-encoded values of its parameters. */
function filler(path: string): (values: Values) => string {
  const parts = segmentsOf(path).map((segment) => {
    if ('parameter' in segment) {
      return (values: Values) => encodeURIComponent(textOf(values(segment.parameter)))
    }
    // A template may have characters that are invalid in a header, plain or already percent-encoded.
    const literal = encodeURI(segment.literal).replaceAll('%25', '%')
    return () => literal
  })
  return (values) => parts.map((part) => part(values)).join('/')
}

/** Returns a value in the format of `textReader`. An unpaired surrogate has no percent-encoding. */
const textOf = (value: unknown): string =>
  value instanceof Date ? value.toISOString() : String(value).toWellFormed()
