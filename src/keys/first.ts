/** The key of a newcomer, who has none yet. */
import { describeUrl } from '../../db/connect.ts'
import type { Database } from '../../db/tables.ts'
import { createFirstKey, hasKeys } from './store.ts'

/** Whether there are keys, and the key itself, if it was made just now: nobody can show it again. */
export interface FirstKey {
  exists: boolean
  key: string | undefined
}

/** Makes a key where the embedded database has none; on MySQL only its operator makes keys. */
export async function prepareFirstKey(db: Database, databaseUrl: string): Promise<FirstKey> {
  if (await hasKeys(db)) return { exists: true, key: undefined }
  if (describeUrl(databaseUrl).engine !== 'sqlite') return { exists: false, key: undefined }
  return { exists: true, key: await createFirstKey(db, 'first key') }
}
