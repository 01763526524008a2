/** The headers of REST answers that say more than the body. */
import type { Context } from '../context.ts'
import type { Operation } from './operations.ts'

type Headers = Record<string, string>

/**
 * Headers of every answer of a deprecated operation: since when (RFC 9745), until when (RFC 8594),
 * and what to use instead (RFC 5829). `baseUrl` is the address of `/v1`.
 */
export function deprecationHeaders({ rest }: Operation, baseUrl: string): Headers {
  if (!rest.deprecation) return {}
  const { since, sunset, successor } = rest.deprecation
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `<${baseUrl}${successor}>; rel="successor-version"`,
  }
}

/**
 * Headers of a success: where what was made is found, where the next page is (RFC 8288).
 * `input` is the query of this page, from which the next page's differs in the cursor alone.
 */
export function successHeaders(
  { rest, path }: Operation,
  baseUrl: string,
  input: Record<string, unknown>,
  output: unknown,
  { page: { next } }: Context,
): Headers {
  if (rest.location) return { Location: baseUrl + rest.location(output as never) }
  if (!rest.paged || next === undefined) return {}
  const query = Object.entries({ ...input, cursor: next }).map(([name, value]) => [
    name,
    String(value),
  ])
  return { Link: `<${baseUrl}${path}?${new URLSearchParams(query)}>; rel="next"` }
}
