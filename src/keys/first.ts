/** The first API key, so that a newcomer can call the service at once. */
import { Deadline } from '../../db/deadline.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { execute } from '../../db/statement.ts'
import type { Database } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'
import { describeUrl } from '../../db/url.ts'
import { createKey } from './store.ts'

/** Whether the database has keys, and the key that was just created, which cannot be shown again. */
export interface FirstKey {
  exists: boolean
  key?: string
}

/** Milliseconds that a server has to answer whether there are keys. */
const TIMEOUT = 2_000

/** Creates a key if the embedded database never had one. On MySQL only the operator creates keys. */
export async function prepareFirstKey(db: Database, databaseUrl: string): Promise<FirstKey> {
  const exists = await hasKeys(db)
  if (exists || describeUrl(databaseUrl).engine !== 'sqlite') return { exists }
  // The transaction begins with the write lock, so only one of several concurrent starts creates a key.
  return await inTransaction(db, async (transaction) => {
    if (await hasKeys(transaction)) return { exists: true }
    return { exists: true, key: (await createKey(transaction, 'first key')).key }
  })
}

/** Whether there are keys. A server that does not say so must not stop an instance that serves. */
async function hasKeys(db: Database): Promise<boolean> {
  using deadline = new Deadline(TIMEOUT)
  const query = db.selectFrom('api_keys').select('id').limit(1)
  const found = execute(db, query, deadline).then(({ rows }) => rows.length > 0)
  return await found.catch((error) => {
    if (error instanceof DatabaseUnavailableError) return true
    throw error
  })
}
