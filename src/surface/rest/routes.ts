/** The router of REST: it finds the path template of a request's path. */

/** A segment of a path template: literal text, or the name of a parameter. */
type Segment = { literal: string } | { parameter: string }

/**
 * Returns the segments of a path template, such as `/pets/{petId}`. Throws TypeError for a parameter
 * that is only a part of a segment, and for two parameters with one name.
 */
export function segmentsOf(path: string): Segment[] {
  const segments = path.split('/').map((text): Segment => {
    const parameter = /^\{([^{}]+)\}$/.exec(text)?.[1]
    if (parameter !== undefined) return { parameter }
    if (/[{}]/.test(text)) {
      throw new TypeError(`In the path ${path} a parameter must be a whole segment`)
    }
    return { literal: text }
  })
  const names = segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []))
  if (new Set(names).size < names.length) {
    throw new TypeError(`In the path ${path} two parameters have the same name`)
  }
  return segments
}

/** Returns the names of the parameters of a path template, in their order. */
export const parametersOf = (path: string): string[] =>
  segmentsOf(path).flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []))

/** Returns the literals of a path template, decoded; undefined for each parameter. */
const patternOf = (path: string): (string | undefined)[] =>
  segmentsOf(path).map((segment) => ('literal' in segment ? decoded(segment.literal) : undefined))

/** Returns a template without the names of its parameters: equal for templates that match the same paths. */
export const formOf = (path: string): string =>
  patternOf(path)
    .map((literal) => literal ?? '{}')
    .join('/')

/** A handler for one method of one path template. */
interface Route<Handler> {
  method: string
  path: string
  handler: Handler
}

/** The path template of a path. */
export interface Match<Handler> {
  /** The handlers by method. */
  methods: ReadonlyMap<string, Handler>
  /** The value of `Allow`. */
  allow: string
  /** The texts of the parameters in their order, percent-encoded. */
  inPath: string[]
}

/**
 * Returns a function that returns the template of a path, or undefined. If several match, a literal
 * segment wins over a parameter, from left to right, in any order of the routes (OpenAPI 3.1, Path
 * Templating Matching). A literal may be percent-encoded (RFC 3986, section 6.2.2.2). A parameter is
 * never empty.
 */
export function matcher<Handler>(
  routes: readonly Route<Handler>[],
): (path: string) => Match<Handler> | undefined {
  const templates = [...Map.groupBy(routes, ({ path }) => formOf(path)).values()].map((here) => {
    const [{ path }] = here as [Route<Handler>] // a group has at least one
    // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
    const methods = new Map(
      here.flatMap(({ method, handler }) =>
        (method === 'GET' ? ['GET', 'HEAD'] : [method]).map((name) => [name, handler]),
      ),
    )
    const allow = [...methods.keys()].join(', ')
    const pattern = patternOf(path)
    const rank = pattern.map((literal) => (literal === undefined ? 1 : 0)).join('')
    return { pattern, rank, methods, allow }
  })
  templates.sort((one, other) => Number(one.rank > other.rank) - Number(one.rank < other.rank))
  const byLength = Map.groupBy(templates, ({ pattern }) => pattern.length)
  return (path) => {
    const segments = path.split('/')
    for (const { pattern, methods, allow } of byLength.get(segments.length) ?? []) {
      const isMatch = segments.every((text, at) =>
        pattern[at] === undefined ? text !== '' : decoded(text) === pattern[at],
      )
      if (isMatch) {
        const inPath = segments.filter((_, at) => pattern[at] === undefined)
        return { methods, allow, inPath }
      }
    }
    return undefined
  }
}

/** Returns a segment without percent-encoding, or unchanged if the encoding is invalid. */
function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
