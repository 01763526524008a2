/** A revocation becomes a fact, apart from the end of a grace period, and API keys get a holder. */
import type { Kysely } from 'kysely'
import { addColumn } from '../columns.ts'
import { now } from '../engine.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await addColumn(db, 'api_keys', 'grace_until', 'bigint')
  await addColumn(db, 'api_keys', 'holder', 'bigint')
  // A revocation in the future was the end of a grace period. MySQL assigns from left to right.
  await db
    .withTables<{ api_keys: { grace_until: bigint | null; revoked_at: bigint | null } }>()
    .updateTable('api_keys')
    .set(({ ref }) => ({ grace_until: ref('revoked_at'), revoked_at: null }))
    .where('revoked_at', '>', now(db))
    .execute()
}
