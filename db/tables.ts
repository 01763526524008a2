/** The columns of the tables, for Kysely. All integers are `bigint`, because a number may be rounded. */
import type { Generated } from 'kysely'

/**
 * Each store declares this interface again with its own table: see petstore/pets/store.ts. Times are milliseconds since
 * 1970 (UTC) by the database's clock, `engine.now`: all databases store an integer exactly.
 */
// biome-ignore lint/suspicious/noEmptyInterface: see above
export interface Tables {}

/** The tables whose ids the database assigns. For others, MySQL returns no id. */
export type WithId = {
  [Table in keyof Tables]: Tables[Table] extends { id: Generated<bigint> } ? Table : never
}[keyof Tables]
