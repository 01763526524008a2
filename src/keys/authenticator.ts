/** API key → caller, without a trip to the database for every request. */

import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Database } from '../../db/tables.ts'
import type { Caller } from '../context.ts'
import { hashKey, isKey } from './format.ts'
import { findKeys, type WorkingKey } from './store.ts'

/** Milliseconds that a key found valid is not looked up again: how long a revoked key may work on. */
export const KEY_LIFETIME = 10_000

/** Keys remembered at most; beyond them the one used least recently is forgotten. */
const MAX_KEYS = 10_000

/** Keys asked for in one query at most. */
const MAX_BATCH = 500

/** Milliseconds between two queries at least: a flood of wrong keys makes them larger, not more. */
const MIN_INTERVAL = 10

/**
 * A function that gives the caller of an API key, or undefined for a key that is unknown, expired
 * or revoked: all three take the same way. Throws DatabaseUnavailableError.
 */
export function createAuthenticator(db: Database): (key: string) => Promise<Caller | undefined> {
  const valid = new LRUCache<string, WorkingKey>({ max: MAX_KEYS, ttl: KEY_LIFETIME })
  const find = batched(async (hashes: string[]) => {
    const keys = await findKeys(db, hashes)
    for (const key of keys) valid.set(key.hash, key)
    return new Map(keys.map((key) => [key.hash, key]))
  })
  return async (key) => {
    if (!isKey(key)) return undefined
    const hash = hashKey(key)
    const cached = valid.get(hash)
    const found = cached && cached.until > Date.now() ? cached : await find(hash)
    return found && { keyId: found.id, keyName: found.name }
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
    const question = waiting.get(key) ?? Promise.withResolvers<Value | undefined>()
    waiting.set(key, question)
    if (!running) void run()
    return question.promise
  }
}
