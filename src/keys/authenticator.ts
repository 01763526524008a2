/** Authentication by API key, with a cache: most requests need no query. */
import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { Deadline } from '../../db/deadline.ts'
import { dedupe } from '../../db/dedupe.ts'
import { OverloadedError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import { KEY_LIFETIME } from './auth.ts'
import { hashKey, isKey } from './format.ts'
import { findKeys, recordUses, type WorkingKey } from './store.ts'

/** Maximum number of cached keys; the least recently used one is dropped. */
const MAX_KEYS = 10_000

/** Maximum number of keys in one query. */
const MAX_BATCH = 500

/** Maximum number of keys that wait for a query, which bounds the memory while the database hangs. */
const MAX_WAITING = 10_000

/** Minimum milliseconds between two queries: a flood of keys makes queries larger, not more frequent. */
const MIN_INTERVAL = 10

/** Milliseconds between two records of the last uses of keys. */
const RECORD_INTERVAL = 60_000

/** Milliseconds that one record may take. A stop waits for the last one and for the one before. */
const RECORD_TIMEOUT = 2_000

export type Authenticator = ReturnType<typeof createAuthenticator>

/** A key in the cache. It is trusted for KEY_LIFETIME; after that it still has priority (see `find`). */
interface CachedKey extends WorkingKey {
  /** When its query began, by performance.now(). */
  since: number
}

/** Returns an authenticator. `onLookUp` hears of each well-formed key, and whether the cache had it. */
export function createAuthenticator(
  db: Database,
  log: Logger,
  onLookUp: (wasCached: boolean) => void = () => {},
) {
  const cache = new LRUCache<string, CachedKey>({ max: MAX_KEYS })

  async function lookUp(hashes: string[]): Promise<Map<string, CachedKey>> {
    const { keys, since } = await retry(
      // The key may be revoked right after the query began, however late the answer comes.
      async () => ({ since: performance.now(), keys: await findKeys(db, hashes) }),
      { repeatable: true },
    )
    const found = new Map(keys.map((key) => [key.hash, { ...key, since }]))
    for (const hash of hashes) {
      const key = found.get(hash)
      if (key) cache.set(hash, key)
      else cache.delete(hash)
    }
    return found
  }
  const findBatched = batched(lookUp)
  const findAlone = dedupe(async (hash: string) => (await lookUp([hash])).get(hash))

  let uses = new Map<bigint, number>()
  let recording = Promise.resolve()
  const record = () => {
    const last = uses
    uses = new Map()
    recording = recording.then(async () => {
      const deadline = new Deadline(RECORD_TIMEOUT)
      try {
        await recordUses(db, last, deadline)
      } catch (error) {
        // The times only inform operators, so a failure is not retried.
        log.warn({ err: error }, 'Could not record when keys were last used')
      } finally {
        deadline.clear()
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
     * Returns an API key from the database; undefined if it is unknown, expired or revoked, which take
     * the same time. Throws DatabaseUnavailableError, or the reason of the deadline.
     */
    async find(key: string, deadline: Deadline): Promise<WorkingKey | undefined> {
      if (!isKey(key)) return undefined
      onLookUp(false)
      const hash = hashKey(key)
      // A key that was valid before does not queue behind a flood of invalid ones.
      const lookUpHash = cache.has(hash) ? findAlone : findBatched
      const found = await deadline.race(lookUpHash(hash))
      if (found) uses.set(found.keyId, Date.now())
      return found
    },
    /** Records the last uses, and stops. Never throws. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await record()
    },
  }
}

type LookUp<Value> = (key: string) => Promise<Value | undefined>

/** Returns a look-up that combines concurrent calls in one query. Throws OverloadedError. */
function batched<Value>(lookUp: (keys: string[]) => Promise<Map<string, Value>>): LookUp<Value> {
  const waiting = new Map<string, PromiseWithResolvers<Value | undefined>>()
  let running = false

  async function run() {
    running = true
    while (waiting.size > 0) {
      const batch = [...waiting].slice(0, MAX_BATCH)
      for (const [key] of batch) waiting.delete(key)
      try {
        const found = await lookUp(batch.map(([key]) => key))
        for (const [key, { resolve }] of batch) resolve(found.get(key))
      } catch (error) {
        for (const [, { reject }] of batch) reject(error)
      }
      await setTimeout(MIN_INTERVAL)
    }
    running = false
  }

  return async (key) => {
    let entry = waiting.get(key)
    if (!entry) {
      if (waiting.size >= MAX_WAITING) throw new OverloadedError('Too many keys wait for a look-up')
      entry = Promise.withResolvers()
      waiting.set(key, entry)
    }
    if (!running) void run()
    return await entry.promise
  }
}
