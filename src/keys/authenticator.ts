/** Authentication by API key, with a cache: most requests need no query. */
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { type Database, Deadline } from '../../db/index.ts'
import { hashKey, KEY_LIFETIME, type KeyCaller, visiblePrefix } from './key.ts'
import { findKey, recordUses } from './store.ts'

/** Maximum number of cached keys, some 3 MB; the least recently used one is dropped. */
const MAX_KEYS = 10_000

/** Milliseconds between two records of the uses of keys. */
const RECORD_INTERVAL = 60_000

/** Milliseconds that one record may take. A stop waits for a final one. */
const RECORD_TIMEOUT = 2_000

export type Authenticator = ReturnType<typeof createAuthenticator>

/** Returns an authenticator. `onLookUp` hears of each well-formed key, and whether the cache had it. */
export function createAuthenticator(
  db: Database,
  log: Logger,
  onLookUp?: (wasCached: boolean) => void,
) {
  // By the key itself, because its hash would take 3 µs of each request. Each is trusted until a time of
  // performance.now().
  const cache = new LRUCache<string, { caller: KeyCaller; until: number }>({ max: MAX_KEYS })
  const usedKeys = new Set<bigint>()
  async function record() {
    using deadline = new Deadline(RECORD_TIMEOUT)
    const keyIds = [...usedKeys]
    usedKeys.clear()
    try {
      await recordUses(db, keyIds, deadline)
    } catch (error) {
      // The times only inform operators, so a failure is not retried.
      log.warn({ err: error }, 'Could not record when keys were last used')
    }
  }
  const timer = setInterval(record, RECORD_INTERVAL).unref()

  return {
    /** Returns the caller of an API key whose look-up began in the last ten seconds and found it valid. */
    known(key: string): KeyCaller | undefined {
      const found = cache.get(key)
      if (!found || found.until <= performance.now()) return undefined
      onLookUp?.(true)
      usedKeys.add(found.caller.keyId)
      return found.caller
    },
    /** Whether the key was valid at its last look-up, however long ago. */
    remembers: (key: string) => cache.has(key),
    /**
     * Returns the caller of an API key from the database; undefined if the key is unknown, expired or revoked.
     * All three cases take the same time. Throws DatabaseUnavailableError, or the reason of the deadline.
     */
    async find(key: string, deadline: Deadline): Promise<KeyCaller | undefined> {
      if (visiblePrefix(key) === undefined) return undefined
      onLookUp?.(false)
      // Spans count from before the query, because the key may be revoked or expire while it runs.
      const began = performance.now()
      const found = await findKey(db, hashKey(key), deadline)
      if (!found) {
        cache.delete(key)
        return undefined
      }
      const { left, ...caller } = found
      cache.set(key, { caller, until: began + Math.min(KEY_LIFETIME, left) })
      usedKeys.add(caller.keyId)
      return caller
    },
    /** Records the last uses, and stops. Never throws. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await record()
    },
  }
}
