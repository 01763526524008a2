/** API key → caller, without a trip to the database for every request. */

import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import { hashKey, isKey } from './format.ts'
import { findKeys, touchKeys, type WorkingKey } from './store.ts'

/** Milliseconds that a key found valid is not looked up again: how long a revoked key may work on. */
export const KEY_LIFETIME = 10_000

/** Keys remembered at most; beyond them the one used least recently is forgotten. */
const MAX_KEYS = 10_000

/** Keys asked for in one query at most. */
const MAX_BATCH = 500

/** Keys that may wait to be asked for; a database that hangs must not let them pile up. */
const MAX_WAITING = 10_000

/** Milliseconds between two queries at least: a flood of wrong keys makes them larger, not more. */
const MIN_INTERVAL = 10

/** Milliseconds between two rounds of noting when keys were last used. */
const NOTE_INTERVAL = 60_000

/** The holder of a valid API key. */
export interface Caller {
  keyId: bigint
}

export interface Authenticator {
  /** The caller of a key that was found valid less than 10 s ago. */
  known(key: string): Caller | undefined
  /**
   * The caller of an API key, or undefined for a key that is unknown, expired or revoked: all
   * three take the same way. Throws DatabaseUnavailableError.
   */
  authenticate(key: string): Promise<Caller | undefined>
  /** Notes the last uses that are not noted yet, and ends. */
  stop(): Promise<void>
}

/**
 * An authenticator on the keys of a database. `onLookUp` hears of every look-up of what may be a
 * key, and whether the cache knew it.
 */
export function createAuthenticator(
  db: Database,
  log: Logger,
  onLookUp: (wasCached: boolean) => void = () => {},
): Authenticator {
  const valid = new LRUCache<string, WorkingKey>({ max: MAX_KEYS, ttl: KEY_LIFETIME })
  const find = batched(async (hashes: string[]) => {
    const { keys, start } = await retry(
      async () => ({ start: performance.now(), keys: await findKeys(db, hashes) }),
      { repeatable: true },
    )
    // A key may have been revoked as soon as it was asked for, however late the answer came.
    for (const key of keys) valid.set(key.hash, key, { start })
    return new Map(keys.map((key) => [key.hash, key]))
  })

  let uses = new Map<bigint, number>()
  let noting = Promise.resolve()
  const note = () => {
    const noted = uses
    uses = new Map()
    // Only a convenience for operators: nothing depends on it, so a failure is not tried again.
    noting = noting
      .then(() => touchKeys(db, noted))
      .catch((error) => log.warn({ err: error }, 'Could not note when keys were last used'))
    return noting
  }
  const timer = setInterval(note, NOTE_INTERVAL).unref()

  return {
    known(key) {
      const cached = isKey(key) ? valid.get(hashKey(key)) : undefined
      return cached && cached.until > Date.now() ? { keyId: cached.id } : undefined
    },
    async authenticate(key) {
      if (!isKey(key)) return undefined
      const hash = hashKey(key)
      const cached = valid.get(hash)
      const isCached = cached !== undefined && cached.until > Date.now()
      onLookUp(isCached)
      const found = isCached ? cached : await find(hash)
      if (!found) return undefined
      uses.set(found.id, Date.now())
      return { keyId: found.id }
    },
    async stop() {
      clearInterval(timer)
      await note()
    },
  }
}

/** Turns a look-up of many into one of a single key: questions that meet are asked together. */
function batched<Value>(lookUp: (keys: string[]) => Promise<Map<string, Value>>) {
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

  return (key: string): Promise<Value | undefined> => {
    if (waiting.size >= MAX_WAITING && !waiting.has(key)) {
      return Promise.reject(new DatabaseUnavailableError(new Error('Too many keys wait'), true))
    }
    const question = waiting.get(key) ?? Promise.withResolvers<Value | undefined>()
    waiting.set(key, question)
    if (!running) void run()
    return question.promise
  }
}
