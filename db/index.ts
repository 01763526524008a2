/**
 * The face of this folder: what the rest of the service imports. It loads neither an engine nor its driver. Migrations
 * have columns.ts and statement.ts, because the face reads them. What runs in browsers, or before a database is
 * opened, imports errors.ts, deadline.ts and url.ts, which load nothing; the commands of backups load backup.ts, and
 * stores extend the interface of tables.ts.
 */
export type { Builder } from './builder.ts'
export { connect } from './connect.ts'
export type { Database, RootDatabase } from './database.ts'
export { Deadline, type WithDeadline } from './deadline.ts'
export {
  BrokenDatabaseError,
  DatabaseUnavailableError,
  DuplicateError,
  KeyTakenError,
  LockedError,
  OverloadedError,
} from './errors.ts'
export type { Usage } from './line.ts'
export { isCurrent, migrate, underLock } from './migrate.ts'
export { MIGRATIONS } from './migrations.ts'
export type { Value } from './plan.ts'
export { type Creation, creation, inserts, valuesOf } from './plans/creations.ts'
export { lookUp, rowById } from './plans/lookup.ts'
/** @public Lists by a text need `pagesBy`, such as that of owners in test/visits. */
export { type Has, type Page, pages, pagesBy } from './plans/pages.ts'
export { removals } from './plans/removals.ts'
export { pauseOrThrow, retry } from './retry.ts'
/** @public Relations need `lockRow`, and lists of ids `lockRows`, such as those in test/visits. */
export { execute, lockRow, lockRows } from './statement.ts'
/** @public Conditions that statements of a store share need it, such as those in test/visits. */
export type { Tables } from './tables.ts'
export { inTransaction } from './transaction.ts'
