/** Databases, and transactions on them: Kysely builds their statements, and a runner executes them. */
import type { Kysely } from 'kysely'
import type { Queue } from './queue.ts'
import type { Runner } from './runner.ts'
import type { Tables } from './tables.ts'

/** A database, or a transaction on it. */
export type Database = Kysely<Tables> & { readonly runner: Runner }

/** A database outside a transaction: what uses it waits in its queue. */
export type RootDatabase = Kysely<Tables> & { readonly runner: Queue }
