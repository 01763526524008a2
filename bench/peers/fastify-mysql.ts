/** Fastify, and prepared statements of mysql2. */
import { serve } from './fastify.ts'
import { mysqlStore } from './mysql-store.ts'

await serve(mysqlStore)
