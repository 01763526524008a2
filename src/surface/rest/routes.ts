/** Path templates such as `/pets/{petId}`: their parameters, and the template of a request's path. */

const PARAMETER = /\{(.+?)\}/g

/** Returns the names of the parameters of a path template, in their order. */
export const parametersOf = (path: string): string[] =>
  [...path.matchAll(PARAMETER)].map(([, name = '']) => name)

/** Returns a path template with a text, percent-encoded, for each of its parameters. */
export const filled = (path: string, textOf: (parameter: string) => string): string =>
  // An unpaired surrogate has no percent-encoding.
  path.replaceAll(PARAMETER, (_, name) => encodeURIComponent(textOf(name).toWellFormed()))

/**
 * Returns a function that finds the operations at a path, by method, with the value of `Allow` and the
 * texts of the path's parameters, percent-encoded and never empty. If several templates match, a literal
 * segment wins over a parameter (OpenAPI 3.1, Path Templating Matching).
 */
export function matcher<Operation extends { method: string; path: string }>(
  operations: Operation[],
) {
  const templates = [...Map.groupBy(operations, ({ path }) => path)]
    .sort(([one], [other]) => (one < other ? -1 : 1)) // `{` follows all letters and digits
    .map(([path, here]) => {
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const methodsOf = ({ method }: Operation) => (method === 'GET' ? ['GET', 'HEAD'] : [method])
      const entries = here.flatMap((one) => methodsOf(one).map((method) => [method, one] as const))
      // The names of the parameters are at the odd places.
      const parts = path
        .split(PARAMETER)
        .map((text, at) => (at % 2 ? '([^/]+)' : RegExp.escape(text)))
      return { pattern: new RegExp(`^${parts.join('')}$`), methods: new Map(entries) }
    })
  return (path: string) => {
    for (const { pattern, methods } of templates) {
      const found = pattern.exec(path)
      if (found) return { methods, inPath: found.slice(1) }
    }
    return undefined
  }
}
