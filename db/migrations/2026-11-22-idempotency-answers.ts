/**
 * What was made by which operation under an Idempotency-Key, and how it was answered. Instances of
 * the first release run on meanwhile: they write neither column, and neither is asked of them.
 */
import type { Kysely } from 'kysely'
import { addColumn } from '../columns.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await addColumn(db, 'idempotency_keys', 'operation', 'varchar(64)')
  await addColumn(db, 'idempotency_keys', 'answer', 'text')
}
