/** The headers of responses for browsers: security, caching, CORS. Lists have names and values in turn. */
import cors from 'cors'
import type { RequestHandler } from 'express'
import { recordOf } from './record.ts'

/**
 * The defaults of helmet 8 (https://helmetjs.github.io), except that framing is denied. Headers for
 * obsolete browsers are omitted.
 */
const securityHeaders = [
  'Cross-Origin-Opener-Policy',
  'same-origin',
  'Cross-Origin-Resource-Policy',
  'same-origin',
  'Referrer-Policy',
  'no-referrer',
  'Strict-Transport-Security',
  'max-age=31536000; includeSubDomains',
  'X-Content-Type-Options',
  'nosniff',
  'X-Frame-Options',
  'DENY',
]

/** The headers of responses that are no page. Opened as a page, they load nothing and cannot be framed. */
const apiHeaders: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none';frame-ancestors 'none'",
  ...securityHeaders,
]

/** The headers of all JSON: `application/json` has no parameters (RFC 8259, section 11). */
export const jsonHeaders: readonly string[] = [...apiHeaders, 'Content-Type', 'application/json']

const noStore = ['Cache-Control', 'no-store']

/** The headers of JSON that requires an API key: caches must not store it (RFC 9111, section 5.2.2.5). */
export const privateHeaders: readonly string[] = [...jsonHeaders, ...noStore]

/** `privateHeaders` for 204, which has no content and so no type (RFC 9110, section 15.3.5). */
export const emptyHeaders: readonly string[] = [...apiHeaders, ...noStore]

/** The headers of pages: they load only files of this origin, and have no inline script or style. */
export const pageHeaders: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
  ...securityHeaders,
]

/**
 * Returns the middleware for CORS (https://fetch.spec.whatwg.org/#http-cors-protocol): pages of these
 * origins may call the service with these methods. `*` allows all origins. Credentials such as
 * cookies are not allowed.
 */
export function crossOrigin(origins: string[], methods: string[]): RequestHandler {
  const handle = cors({
    origin: origins.includes('*') ? '*' : origins,
    methods,
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'X-Request-Id',
      'trpc-accept',
    ],
    exposedHeaders: [
      'Link',
      'Location',
      'Deprecation',
      'Sunset',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'WWW-Authenticate',
      'X-Request-Id',
    ],
    maxAge: 600, // seconds for which a browser caches the response to a preflight
  })
  // The package cors responds to every OPTIONS. Those that are no preflight belong to the routes.
  return (req, res, next) => {
    if (req.method !== 'OPTIONS') return handle(req, res, next)
    if (req.headers['access-control-request-method'] === undefined) return next()
    // The package cors writes this response itself, without `answer`.
    res.setHeader('X-Request-Id', recordOf(res).requestId)
    for (let at = 0; at < apiHeaders.length; at += 2)
      res.setHeader(`${apiHeaders[at]}`, `${apiHeaders[at + 1]}`)
    handle(req, res, next)
  }
}
