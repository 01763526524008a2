/** The first API key, so that a newcomer can call the service at once. */
import type { Database } from '../../db/tables.ts'
import { describeUrl } from '../../db/url.ts'
import { newKey } from './format.ts'

/** Whether the database has keys, and the key that was just created, which cannot be shown again. */
export type FirstKey = Awaited<ReturnType<typeof prepareFirstKey>>

/** Creates a key if the embedded database never had one. On MySQL only the operator creates keys. */
export async function prepareFirstKey(db: Database, databaseUrl: string) {
  const anyKey = db.selectFrom('api_keys').select('id').limit(1)
  if (await anyKey.executeTakeFirst()) return { exists: true, key: undefined }
  if (describeUrl(databaseUrl).engine !== 'sqlite') return { exists: false, key: undefined }
  const { key, prefix, hash } = newKey(false)
  // One statement checks and inserts, so that only one of several concurrent starts creates a key.
  const row = db
    .selectNoFrom(({ val }) => [
      val('first key').as('name'),
      val(prefix).as('prefix'),
      val(hash).as('hash'),
      val(BigInt(Date.now())).as('created_at'),
      val(0n).as('read_only'),
    ])
    .where(({ not, exists }) => not(exists(anyKey)))
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('api_keys')
    .columns(['name', 'prefix', 'hash', 'created_at', 'read_only'])
    .expression(row)
    .executeTakeFirstOrThrow()
  return { exists: true, key: numInsertedOrUpdatedRows === 1n ? key : undefined }
}
