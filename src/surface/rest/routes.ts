/** Path templates such as `/pets/{petId}`: their parameters, and the template of a request's path. */

const PARAMETER = /\{(.+?)\}/g

/** Returns the names of the parameters of a path template, in their order. */
export const parametersOf = (path: string): string[] =>
  [...path.matchAll(PARAMETER)].map(([, name = '']) => name)

/** Returns a path template with a text, percent-encoded, for each of its parameters. */
export const filled = (path: string, textOf: (parameter: string) => string): string =>
  // An unpaired surrogate has no percent-encoding.
  path.replaceAll(PARAMETER, (_, name) => encodeURIComponent(textOf(name).toWellFormed()))

/** A handler for one method of one path template. */
interface Route<Handler> {
  method: string
  path: string
  handler: Handler
}

/**
 * Returns a function that finds a path: the handlers by method, the value of `Allow`, and the texts of
 * the path's parameters, percent-encoded and never empty. If several templates match, a literal segment
 * wins over a parameter, from left to right (OpenAPI 3.1, Path Templating Matching). Throws TypeError
 * for two routes with one method and path, and for two names of one parameter.
 */
export function matcher<Handler>(routes: Route<Handler>[]) {
  const byForm = Map.groupBy(routes, ({ path }) => path.replaceAll(PARAMETER, '{'))
  const templates = [...byForm]
    // `{` follows all letters and digits.
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([form, here]) => {
      const segments = form
        .split('/')
        .map((text) => (text === '{' ? '([^/]+)' : RegExp.escape(text)))
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const withHead = here.flatMap((route) =>
        route.method === 'GET' ? [route, { ...route, method: 'HEAD' }] : [route],
      )
      const methods = new Map(withHead.map(({ method, handler }) => [method, handler]))
      const paths = new Set(here.map(({ path }) => path))
      if (paths.size > 1 || methods.size < withHead.length)
        throw new TypeError(`Two operations are at ${[...paths].join(' and ')}`)
      const allow = [...methods.keys()].join(', ')
      return { pattern: new RegExp(`^${segments.join('/')}$`), methods, allow }
    })
  return (path: string) => {
    for (const { pattern, methods, allow } of templates) {
      const found = pattern.exec(path)
      if (found) return { methods, allow, inPath: found.slice(1) }
    }
    return undefined
  }
}
