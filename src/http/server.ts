/** The HTTP server: what Node does before and after the app. */
import { createServer, type Server } from 'node:http'
import type { Express } from 'express'

/** A server for the app, with bounds on how long a client may take to send (milliseconds) and how much. */
export function createHttpServer(app: Express): Server {
  return createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000, // longer than the 60 s of common load balancers, so that they close first
      maxHeaderSize: 16_384,
    },
    app,
  )
}
