/** Authentication by API key, with a cache: most requests need no query. */
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { Deadline } from '../../db/deadline.ts'
import type { Database } from '../../db/tables.ts'
import { hashKey, isKey, KEY_LIFETIME } from './key.ts'
import { keyLookUp, recordUses, type WorkingKey } from './store.ts'

/** Maximum number of cached keys; the least recently used one is dropped. */
const MAX_KEYS = 10_000

/** The limits of look-ups. A flood of keys makes queries larger, not more frequent. */
const LOOK_UP_LIMITS = { maxSize: 500, maxCalls: 10_000, pause: 10 }

/** Milliseconds between two records of the last uses of keys. */
const RECORD_INTERVAL = 60_000

/** Milliseconds that one record may take. A stop waits for the current one and for a final one. */
const RECORD_TIMEOUT = 2_000

export type Authenticator = ReturnType<typeof createAuthenticator>

/** A key in the cache. It is trusted for KEY_LIFETIME; after that it still has priority (see `find`). */
interface CachedKey extends WorkingKey {
  /** When its look-up began, by performance.now(). */
  since: number
}

/** Returns an authenticator. `onLookUp` hears of each well-formed key, and whether the cache had it. */
export function createAuthenticator(
  db: Database,
  log: Logger,
  onLookUp: (wasCached: boolean) => void = () => {},
) {
  const cache = new LRUCache<string, CachedKey>({ max: MAX_KEYS })

  const findKey = keyLookUp(LOOK_UP_LIMITS)
  // A key that was valid before does not queue behind a flood of invalid ones.
  const findRemembered = keyLookUp()

  let uses = new Map<bigint, number>()
  let recording = Promise.resolve()
  const record = () => {
    const last = uses
    uses = new Map()
    recording = recording.then(async () => {
      using deadline = new Deadline(RECORD_TIMEOUT)
      try {
        await recordUses(db, last, deadline)
      } catch (error) {
        // The times only inform operators, so a failure is not retried.
        log.warn({ err: error }, 'Could not record when keys were last used')
      }
    })
    return recording
  }
  const timer = setInterval(record, RECORD_INTERVAL).unref()

  return {
    /** Returns an API key from the cache; undefined if it was not found valid in the last 10 seconds. */
    known(key: string): WorkingKey | undefined {
      if (!isKey(key)) return undefined
      const found = cache.get(hashKey(key))
      const now = Date.now()
      if (!found || found.until <= now) return undefined
      if (performance.now() - found.since >= KEY_LIFETIME) return undefined
      onLookUp(true)
      uses.set(found.keyId, now)
      return found
    },
    /** Whether the key was valid at its last look-up, however long ago. */
    remembers: (key: string) => isKey(key) && cache.has(hashKey(key)),
    /**
     * Returns an API key from the database; undefined if it is unknown, expired or revoked. All
     * three cases take the same time. Throws DatabaseUnavailableError, or the reason of the deadline.
     */
    async find(key: string, deadline: Deadline): Promise<WorkingKey | undefined> {
      if (!isKey(key)) return undefined
      onLookUp(false)
      const hash = hashKey(key)
      // Counts from before the query, because the key may be revoked while it runs.
      const since = performance.now()
      const find = cache.has(hash) ? findRemembered : findKey
      const found = await find(db, hash, deadline)
      if (found) {
        cache.set(hash, { ...found, since })
        uses.set(found.keyId, Date.now())
      } else cache.delete(hash)
      return found
    },
    /** Records the last uses, and stops. Never throws. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await record()
    },
  }
}
