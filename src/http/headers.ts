/** The headers of every answer, as lists of names and values that are made once: what a browser may do with it. */
import { Socket } from 'node:net'
import cors from 'cors'
import type { RequestHandler } from 'express'
import helmet, { type HelmetOptions } from 'helmet'
import { http } from './node.ts'
import { recordOf } from './record.ts'

const shared = {
  crossOriginEmbedderPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
  xFrameOptions: { action: 'deny' },
} as const

type Policy = NonNullable<HelmetOptions['contentSecurityPolicy']>

/** What helmet sets: it is asked once, at the start, and gives every request the same. */
function headersOf(contentSecurityPolicy: Policy): readonly string[] {
  const list: string[] = []
  const req = new http.IncomingMessage(new Socket())
  const res = Object.assign(new http.ServerResponse(req), {
    setHeader(name: string, value: unknown) {
      list.push(name, String(value))
      return res
    },
  })
  helmet({ ...shared, contentSecurityPolicy })(req, res, () => {})
  return list
}

/** For JSON: an answer that some browser takes for a page can load, run and be framed by nothing. */
export const apiHeaders = headersOf({
  useDefaults: false,
  directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
})

/** Those of every answer in JSON, as `application/json` without parameters (RFC 8259 defines none). */
export const jsonHeaders: readonly string[] = [...apiHeaders, 'Content-Type', 'application/json']

const noStore = ['Cache-Control', 'no-store']

/** For JSON that needed a key: no cache keeps it (RFC 9111, section 5.2.2.5). */
export const privateHeaders: readonly string[] = [...jsonHeaders, ...noStore]

/** The same for 204, which has no content whose type there is (RFC 9110, section 15.3.5). */
export const emptyHeaders: readonly string[] = [...apiHeaders, ...noStore]

/** For pages: nothing but what comes from this origin; no inline script, no inline style. */
export const pageHeaders = headersOf({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    baseUri: ["'none'"],
    connectSrc: ["'self'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
    imgSrc: ["'self'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
  },
})

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
