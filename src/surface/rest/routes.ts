/** The router of REST: it finds the path template of a request's path. */
import { allowOf } from '../../http/respond.ts'

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
  const names = parametersOf(segments)
  if (new Set(names).size < names.length) {
    throw new TypeError(`In the path ${path} two parameters have the same name`)
  }
  return segments
}

/** Returns the names of the parameters, in their order. */
export const parametersOf = (segments: readonly Segment[]): string[] =>
  segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []))

/** Returns a template without the names of its parameters: equal for templates that match the same paths. */
export const formOf = (path: string): string =>
  segmentsOf(path)
    .map((segment) => ('parameter' in segment ? '{}' : decoded(segment.literal)))
    .join('/')

/** A handler for one method of one path template. */
export interface Route<Handler> {
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

interface Node<Handler> {
  literals: Map<string, Node<Handler>>
  parameter?: Node<Handler>
  match?: Match<Handler>
}

/**
 * Returns a function that returns the template of a path, or undefined. If several match, a literal
 * segment wins over a parameter, from left to right, in any order of the routes (OpenAPI 3.1, Path
 * Templating Matching). A literal may be percent-encoded (RFC 3986, section 6.2.2.2). A parameter is
 * never empty. Throws TypeError for two routes with one method and path.
 */
export function matcher<Handler>(
  routes: readonly Route<Handler>[],
): (path: string) => Match<Handler> | undefined {
  const root: Node<Handler> = { literals: new Map() }
  for (const here of Map.groupBy(routes, ({ path }) => formOf(path)).values()) {
    const methods = new Map(here.map(({ method, handler }) => [method, handler]))
    const [{ path }] = here as [Route<Handler>] // a group has at least one
    if (methods.size < here.length) throw new TypeError(`The path ${path} has a method twice`)
    // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
    const get = methods.get('GET')
    if (get) methods.set('HEAD', get)
    const allow = allowOf(here.map(({ method }) => method))
    segmentsOf(path).reduce(childOf, root).match = { methods, allow, inPath: [] }
  }
  return (path) => find(root, path.split('/'), 0)
}

/** Returns the child of a node for a segment, and adds it if it is missing. */
function childOf<Handler>(node: Node<Handler>, segment: Segment): Node<Handler> {
  if ('parameter' in segment) {
    node.parameter ??= { literals: new Map() }
    return node.parameter
  }
  const text = decoded(segment.literal)
  const child = node.literals.get(text) ?? { literals: new Map() }
  node.literals.set(text, child)
  return child
}

function find<Handler>(
  node: Node<Handler>,
  segments: readonly string[],
  at: number,
): Match<Handler> | undefined {
  const segment = segments[at]
  if (segment === undefined) return node.match
  const literal = node.literals.get(decoded(segment))
  const found = literal && find(literal, segments, at + 1)
  if (found || segment === '' || !node.parameter) return found
  const rest = find(node.parameter, segments, at + 1)
  return rest && { ...rest, inPath: [segment, ...rest.inPath] }
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
