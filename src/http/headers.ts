/** The headers of responses for browsers: security, caching, CORS. */
import cors from 'cors'
import type { RequestHandler } from 'express'

/** Returns headers as a list of each name and its value, which Node writes faster than an object. */
export const headersOf = (headers: Record<string, string>): readonly string[] =>
  Object.entries(headers).flat()

/** What a browser does with any response: it guesses no type, and shows it nowhere else. */
const securityHeaders = {
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

/** The headers of responses that are not pages. If a browser opens one, it loads nothing, and cannot be framed. */
const apiHeaders = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  ...securityHeaders,
}

/** The headers of JSON that caches may store. `application/json` has no parameters (RFC 8259, section 11). */
export const publicHeaders = headersOf({ ...apiHeaders, 'Content-Type': 'application/json' })

/** The headers of all other JSON: caches must not store it (RFC 9111, section 5.2.2.5). */
export const jsonHeaders = [...publicHeaders, 'Cache-Control', 'no-store']

/** `jsonHeaders` for 204, which has no content and so no type (RFC 9110, section 15.3.5). */
export const emptyHeaders = headersOf({ ...apiHeaders, 'Cache-Control': 'no-store' })

/** The headers of pages: they load only files of this origin, and have no inline script or style. */
export const pageHeaders = headersOf({
  'Content-Security-Policy':
    "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
  ...securityHeaders,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
})

/** The headers of the OpenAPI document beside others: an editor on any page may read what is public. */
export const forAnyPage = ['Access-Control-Allow-Origin', '*']

/** The headers that pages of other origins may send to any operation. */
const OF_CALLERS =
  'Authorization,Content-Type,Idempotency-Key,X-Request-Id,X-Requested-With,Cache-Control,Pragma,trpc-accept,x-trpc-source,traceparent,tracestate,baggage'.split(
    ',',
  )

/**
 * Returns the middleware for CORS (https://fetch.spec.whatwg.org/#http-cors-protocol): pages of these origins
 * may call the service with these methods and, beside the service's own, these headers. `*` allows all origins.
 * Cookies are allowed for a sign-in by cookie alone, and only where the origins are named.
 */
export function crossOrigin(
  origins: string[],
  methods: string[],
  headers: string[],
  hasCookie: boolean,
): RequestHandler {
  const isOpen = origins.includes('*')
  const handle = cors({
    origin: isOpen ? '*' : origins,
    credentials: hasCookie && !isOpen,
    methods,
    allowedHeaders: [...OF_CALLERS, ...headers].join(),
    exposedHeaders:
      'Link,Location,Deprecation,Sunset,RateLimit,RateLimit-Policy,Retry-After,WWW-Authenticate,X-Request-Id',
    maxAge: 600, // seconds for which a browser caches the response to a preflight
  })
  // The package cors responds to every OPTIONS. Those that are no preflight belong to the routes.
  return (req, res, next) => {
    if (req.method !== 'OPTIONS') return handle(req, res, next)
    if (req.headers['access-control-request-method'] === undefined) return next()
    // The package cors writes this response itself, without `send`.
    const headers = { ...apiHeaders, 'X-Request-Id': res.record.requestId }
    res.setHeaders(new Map(Object.entries(headers)))
    handle(req, res, next)
  }
}
