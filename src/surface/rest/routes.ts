/** The paths of REST: what a template consists of, and which template the path of a request matches. */
import { allowOf } from '../../http/respond.ts'

/** A part of a path, between slashes: plain text, or a parameter by its name. */
export type Segment = { literal: string } | { parameter: string }

/**
 * The segments of a path template, such as `/pets/{petId}`. A parameter is a whole segment. Throws
 * TypeError for one that is not, and for two parameters of one name.
 */
export function segmentsOf(path: string): Segment[] {
  const segments = path.split('/').map((text): Segment => {
    const parameter = /^\{([^{}]+)\}$/.exec(text)?.[1]
    if (parameter !== undefined) return { parameter }
    if (/[{}]/.test(text)) {
      throw new TypeError(`In the path ${path} a parameter must be all that is between two slashes`)
    }
    return { literal: text }
  })
  const names = parametersOf(segments)
  if (new Set(names).size < names.length) {
    throw new TypeError(`In the path ${path} two parameters have the same name`)
  }
  return segments
}

/** The names of the parameters, in their order. */
export const parametersOf = (segments: readonly Segment[]): string[] =>
  segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []))

/** What templates have in common that match the same paths, whatever their parameters are called. */
export const formOf = (path: string): string =>
  segmentsOf(path)
    .map((segment) => ('parameter' in segment ? '{}' : decoded(segment.literal)))
    .join('/')

/** What one method does at one path. */
export interface Route<Served> {
  method: string
  path: string
  served: Served
}

/** The template that a path matched. */
export interface Match<Served> {
  /** What is served there, by method. */
  methods: ReadonlyMap<string, Served>
  /** The value of `Allow`. */
  allow: string
  /** The texts of its parameters, in their order, still percent-encoded. */
  inPath: string[]
}

interface Node<Served> {
  literals: Map<string, Node<Served>>
  parameter?: Node<Served>
  match?: Match<Served>
}

/**
 * A function that finds the template of a path, or nothing. Where several match, a literal segment
 * wins over a parameter, from left to right, in whatever order the routes come (OpenAPI 3.1, Path
 * Templating Matching). A literal may be percent-encoded (RFC 3986, section 6.2.2.2); a parameter is
 * never empty. Throws TypeError for two routes of one method at one path.
 */
export function matcher<Served>(
  routes: readonly Route<Served>[],
): (path: string) => Match<Served> | undefined {
  const root: Node<Served> = { literals: new Map() }
  for (const here of Map.groupBy(routes, ({ path }) => formOf(path)).values()) {
    const methods = new Map(here.map(({ method, served }) => [method, served]))
    const [{ path }] = here as [Route<Served>] // a group has one at least
    if (methods.size < here.length) throw new TypeError(`At ${path} a method is served twice`)
    // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http leaves out.
    const get = methods.get('GET')
    if (get) methods.set('HEAD', get)
    const allow = allowOf(here.map(({ method }) => method))
    segmentsOf(path).reduce(below, root).match = { methods, allow, inPath: [] }
  }
  return (path) => find(root, path.split('/'), 0)
}

/** The node below another one that a segment leads to; it is added where it is not there yet. */
function below<Served>(node: Node<Served>, segment: Segment): Node<Served> {
  if ('parameter' in segment) {
    node.parameter ??= { literals: new Map() }
    return node.parameter
  }
  const text = decoded(segment.literal)
  const next = node.literals.get(text) ?? { literals: new Map() }
  node.literals.set(text, next)
  return next
}

function find<Served>(
  node: Node<Served>,
  segments: readonly string[],
  at: number,
): Match<Served> | undefined {
  const segment = segments[at]
  if (segment === undefined) return node.match
  const literal = node.literals.get(decoded(segment))
  const found = literal && find(literal, segments, at + 1)
  if (found || segment === '' || !node.parameter) return found
  const rest = find(node.parameter, segments, at + 1)
  return rest && { ...rest, inPath: [segment, ...rest.inPath] }
}

/** A segment without percent-encoding; as it is where that cannot be read, as no literal is then. */
function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
