/** A revocation becomes a fact, apart from the end of a grace period, and API keys get a holder. */
import { addColumn, type Database } from '../columns.ts'
import { execute } from '../statement.ts'

export async function up(db: Database): Promise<void> {
  await addColumn(db, 'api_keys', 'grace_until', 'bigint')
  await addColumn(db, 'api_keys', 'holder', 'bigint')
  // A revocation in the future was the end of a grace period. MySQL assigns from left to right.
  const update = db.kysely
    .withTables<{ api_keys: { grace_until: bigint | null; revoked_at: bigint | null } }>()
    .updateTable('api_keys')
    .set(({ ref }) => ({ grace_until: ref('revoked_at'), revoked_at: null }))
    .where('revoked_at', '>', db.engine.now)
  await execute(db, update)
}
