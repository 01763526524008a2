/**
 * Which API keys may only read. Instances of an earlier release run on meanwhile: they neither write
 * nor ask for the column, and a key that may only read has a form that they take for no key.
 */
import type { Kysely } from 'kysely'
import { addColumn } from '../columns.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await addColumn(db, 'api_keys', 'read_only', 'bigint')
}
