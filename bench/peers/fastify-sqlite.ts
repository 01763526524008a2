/** Fastify, and prepared statements of node:sqlite. */
import { serve } from './fastify.ts'
import { sqliteStore } from './sqlite-store.ts'

await serve(sqliteStore)
