/** The columns of the tables, for Kysely. All integers are `bigint`, because a number may be rounded. */
import type { Generated } from 'kysely'

/** The store of a resource declares this interface again with its own table: see pets/store.ts. */
export interface Tables {
  api_keys: ApiKeysTable
  idempotency_keys: IdempotencyKeysTable
}

/**
 * Times are milliseconds since 1970 (UTC) by the database's clock, `engine.now`: all databases store an
 * integer exactly.
 */
export interface ApiKeysTable {
  id: Generated<bigint>
  name: string
  /** The first characters of the key, by which operators recognize it. */
  prefix: string
  /** SHA-256 of the key, 64 hexadecimal digits. The key itself is not stored. */
  hash: string
  created_at: bigint
  expires_at: bigint | null
  /** A key with a time here is revoked, whatever the time is. */
  revoked_at: bigint | null
  last_used_at: bigint | null
  /** 1 for a key that may only read, otherwise 0. */
  read_only: bigint
  /** When a rotated key stops working. */
  grace_until: bigint | null
  /**
   * A random number that the keys that follow from one another by rotation share; their Idempotency-Keys
   * are the same. Null stands for the key's id, which is not random: a restore may give it out again.
   */
  holder: bigint | null
}

/** The output of a request with an Idempotency-Key, which a repetition of the request returns. */
export interface IdempotencyKeysTable {
  id: Generated<bigint>
  /** The `holder` of the API key. */
  api_key_id: bigint
  /** SHA-256 of the Idempotency-Key, 64 hexadecimal digits, which have a fixed length. */
  key_hash: string
  /** The name of the procedure. */
  operation: string
  /** SHA-256 of the input, 64 hexadecimal digits. */
  fingerprint: string
  /** The output in devalue's encoding; empty only within the transaction of the request. */
  answer: string
  created_at: bigint
}
