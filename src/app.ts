/** The Express app: what is mounted where, and in which order. */
import type { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import express, { type Express } from 'express'
import type { Logger } from 'pino'
import type { Database } from '../db/tables.ts'
import { answerErrors, notFound } from './http/errors.ts'
import { identify } from './http/identify.ts'
import { createAuthenticator } from './keys/authenticator.ts'
import { petStore } from './pets/store.ts'
import type { Servers } from './rest/document.ts'
import { restRouter } from './rest/mount.ts'
import { appRouter } from './router.ts'
import { trpcRouter } from './trpc/mount.ts'

/** The service on a migrated database, as an Express app that listens nowhere yet. */
export function createApp(db: Database, servers: Servers, log: Logger): Express {
  const guards = [identify(createAuthenticator(db), petStore(db))]
  const onError = (error: TRPCError) => {
    if (getHTTPStatusCodeFromError(error) >= 500)
      log.error({ err: error.cause ?? error }, error.message)
  }

  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  app.set('query parser', 'simple')
  app.use('/v1', restRouter(appRouter, servers, guards, onError))
  app.use('/trpc', trpcRouter(appRouter, guards, onError))
  app.use(notFound)
  app.use(answerErrors(onError))
  return app
}
