/** The target of a request: its path and its query. */

export interface Target {
  /** Still percent-encoded; begins with a slash, except for `*`. */
  path: string
  /** What follows the question mark, or nothing. */
  query: string
}

/**
 * The target of a request line, in one of the forms of RFC 9112, section 3.2: of an absolute address
 * only the path and the query count, as this is the server that was asked. Undefined for one that
 * cannot be taken apart.
 */
export function parseTarget(url: string): Target | undefined {
  if (!url.startsWith('/') && url !== '*') {
    const parsed = URL.parse(url)
    return parsed ? { path: parsed.pathname, query: parsed.search.slice(1) } : undefined
  }
  const end = url.indexOf('?')
  return end === -1
    ? { path: url, query: '' }
    : { path: url.slice(0, end), query: url.slice(end + 1) }
}
