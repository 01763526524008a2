/** The first API key, so that a newcomer can call the service at once. */
import { Deadline } from '../../db/deadline.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { execute } from '../../db/statement.ts'
import type { Database } from '../../db/tables.ts'
import { describeUrl } from '../../db/url.ts'
import { newKey } from './format.ts'

/** Whether the database has keys, and the key that was just created, which cannot be shown again. */
export type FirstKey = Awaited<ReturnType<typeof prepareFirstKey>>

/** Milliseconds that a server has to answer whether there are keys. */
const TIMEOUT = 2_000

/** Creates a key if the embedded database never had one. On MySQL only the operator creates keys. */
export async function prepareFirstKey(db: Database, databaseUrl: string) {
  const exists = await hasKeys(db)
  if (exists || describeUrl(databaseUrl).engine !== 'sqlite') return { exists, key: undefined }
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
    .where(({ not, exists }) => not(exists(queryKey(db))))
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('api_keys')
    .columns(['name', 'prefix', 'hash', 'created_at', 'read_only'])
    .expression(row)
    .executeTakeFirstOrThrow()
  return { exists: true, key: numInsertedOrUpdatedRows === 1n ? key : undefined }
}

/** Whether there are keys. A server that does not say so must not stop an instance that serves. */
async function hasKeys(db: Database): Promise<boolean> {
  const deadline = new Deadline(TIMEOUT)
  try {
    const { rows } = await execute(db, queryKey(db), deadline)
    return rows.length > 0
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) return true
    throw error
  } finally {
    deadline.clear()
  }
}

const queryKey = (db: Database) => db.selectFrom('api_keys').select('id').limit(1)
