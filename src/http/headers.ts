/** The headers of every answer: what a browser may do with it. */
import cors from 'cors'
import type { RequestHandler } from 'express'
import helmet from 'helmet'

const shared = {
  crossOriginEmbedderPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
  xFrameOptions: { action: 'deny' },
} as const

/** For JSON: an answer that some browser takes for a page can load, run and be framed by nothing. */
export const apiHeaders: RequestHandler = helmet({
  ...shared,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
})

/** For pages: nothing but what comes from this origin; no inline script, no inline style. */
export const pageHeaders: RequestHandler = helmet({
  ...shared,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      baseUri: ["'none'"],
      connectSrc: ["'self'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
      imgSrc: ["'self'", 'data:'],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
    },
  },
})

/** No cache keeps an answer that needed a key (RFC 9111, section 5.2.2.5). */
export const noStore: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store')
  next()
}

/** Lets pages of these origins call the service; `*` stands for all. No cookies are involved. */
export function crossOrigin(origins: string[]): RequestHandler {
  const handle = cors({
    origin: origins.includes('*') ? '*' : origins,
    methods: ['GET', 'HEAD', 'POST'],
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
    const isPreflight = req.headers['access-control-request-method'] !== undefined
    if (req.method === 'OPTIONS' && !isPreflight) next()
    else handle(req, res, next)
  }
}
