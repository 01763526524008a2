/** The headers of every answer, as lists of names and values that are made once: what a browser may do with it. */
import cors from 'cors'
import type { RequestHandler } from 'express'
import { recordOf } from './record.ts'

/**
 * What helmet 8 sets by default (https://helmetjs.github.io), with framing denied, and without what
 * concerns old browsers or pages of other origins alone.
 */
const shared = [
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

/** For JSON: an answer that some browser takes for a page can load, run and be framed by nothing. */
export const apiHeaders: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none';frame-ancestors 'none'",
  ...shared,
]

/** Those of every answer in JSON, as `application/json` without parameters (RFC 8259 defines none). */
export const jsonHeaders: readonly string[] = [...apiHeaders, 'Content-Type', 'application/json']

const noStore = ['Cache-Control', 'no-store']

/** For JSON that needed a key: no cache keeps it (RFC 9111, section 5.2.2.5). */
export const privateHeaders: readonly string[] = [...jsonHeaders, ...noStore]

/** The same for 204, which has no content whose type there is (RFC 9110, section 15.3.5). */
export const emptyHeaders: readonly string[] = [...apiHeaders, ...noStore]

/** For pages: nothing but what comes from this origin; no inline script, no inline style. */
export const pageHeaders: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
  ...shared,
]

/**
 * Lets pages of these origins call the service by these methods; `*` stands for all origins. No
 * cookies are involved.
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
    maxAge: 600, // seconds that a browser keeps the answer to a pre-flight
  })
  // cors takes every OPTIONS for a pre-flight; others are left to the routes.
  return (req, res, next) => {
    if (req.method !== 'OPTIONS') return handle(req, res, next)
    if (req.headers['access-control-request-method'] === undefined) return next()
    // cors writes the answer itself.
    res.setHeader('X-Request-Id', recordOf(res).requestId)
    for (let at = 0; at < apiHeaders.length; at += 2)
      res.setHeader(`${apiHeaders[at]}`, `${apiHeaders[at + 1]}`)
    handle(req, res, next)
  }
}
