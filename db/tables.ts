/** The rows of every table, as Kysely sees them. All integers are `bigint`: no driver rounds. */
import type { Generated, Kysely } from 'kysely'

/** A resource adds its own table where its store is, by declaring it once more: see pets/store.ts. */
export interface Tables {
  api_keys: ApiKeysTable
  idempotency_keys: IdempotencyKeysTable
}

/** Times are milliseconds since 1970 (UTC): exact, and the same on every engine. */
export interface ApiKeysTable {
  id: Generated<bigint>
  name: string
  /** The first characters of the key, so that people can tell keys apart. */
  prefix: string
  /** SHA-256 of the whole key, 64 hexadecimal digits. The key itself is never stored. */
  hash: string
  created_at: bigint
  expires_at: bigint | null
  /** In the past for a key that was revoked; in the future for one that was rotated, in its grace. */
  revoked_at: bigint | null
  last_used_at: bigint | null
  /** 1 for a key that may only read; 0 for any other. */
  read_only: bigint
}

/** What was made under an Idempotency-Key, so that a repetition makes nothing. */
export interface IdempotencyKeysTable {
  id: Generated<bigint>
  api_key_id: bigint
  /** SHA-256 of the Idempotency-Key, 64 hexadecimal digits: of one length, and compared exactly. */
  key_hash: string
  /** The name of the procedure. */
  operation: string
  /** SHA-256 of the input, 64 hexadecimal digits. */
  fingerprint: string
  /** The output in devalue's encoding; empty only inside the transaction that makes it. */
  answer: string
  created_at: bigint
}

export type Database = Kysely<Tables>
