/** A database, or a transaction on it. */
import type { Kysely } from 'kysely'
import type { Lanes } from './lanes.ts'
import type { Tables } from './tables.ts'

/** Kysely builds its statements, and its lanes execute them. */
export type Database = Kysely<Tables> & { readonly lanes: Lanes }
