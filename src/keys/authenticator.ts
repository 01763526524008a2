/** API key → caller, without a trip to the database for every request. */
import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Deadline } from '../../db/deadline.ts'
import { dedupe } from '../../db/dedupe.ts'
import { OverloadedError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import { hashKey, isKey } from './format.ts'
import { KEY_LIFETIME } from './lifetime.ts'
import { findKeys, touchKeys, type WorkingKey } from './store.ts'

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

export type Authenticator = ReturnType<typeof createAuthenticator>

/** A key that was found valid: it is believed for a while, and remembered for longer. */
interface Remembered extends WorkingKey {
  /** When it was asked for, by performance.now(). */
  since: number
}

/**
 * An authenticator on the keys of a database. `onLookUp` hears of every look-up of what may be a
 * key, and whether the cache knew it.
 */
export function createAuthenticator(
  db: Database,
  log: Logger,
  onLookUp: (wasCached: boolean) => void = () => {},
) {
  const remembered = new LRUCache<string, Remembered>({ max: MAX_KEYS })

  async function lookUp(hashes: string[]): Promise<Map<string, Remembered>> {
    const { keys, since } = await retry(
      // A key may have been revoked as soon as it was asked for, however late the answer comes.
      async () => ({ since: performance.now(), keys: await findKeys(db, hashes) }),
      { repeatable: true },
    )
    const found = new Map(keys.map((key) => [key.hash, { ...key, since }]))
    for (const hash of hashes) {
      const key = found.get(hash)
      if (key) remembered.set(hash, key)
      else remembered.delete(hash)
    }
    return found
  }
  const askTogether = batched(lookUp)
  const askAlone = dedupe(async (hash: string) => (await lookUp([hash])).get(hash))

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
    /** What is known of an API key that was found valid less than 10 seconds ago. */
    known(key: string): WorkingKey | undefined {
      if (!isKey(key)) return undefined
      const found = remembered.get(hashKey(key))
      const now = Date.now()
      if (!found || found.until <= now) return undefined
      if (performance.now() - found.since >= KEY_LIFETIME) return undefined
      onLookUp(true)
      uses.set(found.keyId, now)
      return found
    },
    /** Whether the key was found valid the last time it was looked up, however long ago. */
    remembers: (key: string) => isKey(key) && remembered.has(hashKey(key)),
    /**
     * What the database knows of an API key, or undefined for one that is unknown, expired or revoked:
     * all three take the same way. Throws DatabaseUnavailableError, or the reason of the deadline.
     */
    async find(key: string, deadline: Deadline): Promise<WorkingKey | undefined> {
      if (!isKey(key)) return undefined
      onLookUp(false)
      const hash = hashKey(key)
      // One that was valid a moment ago does not stand behind a flood of those that never were.
      const ask = remembered.has(hash) ? askAlone : askTogether
      const found = await deadline.race(ask(hash))
      if (found) uses.set(found.keyId, Date.now())
      return found
    },
    /** Notes the last uses that are not noted yet, and ends. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await note()
    },
  }
}

type LookUp<Value> = (key: string) => Promise<Value | undefined>

/** Turns a look-up of many into one of a single key: questions that meet are asked together. */
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
    let question = waiting.get(key)
    if (!question) {
      if (waiting.size >= MAX_WAITING) throw new OverloadedError('Too many keys wait')
      question = Promise.withResolvers()
      waiting.set(key, question)
    }
    if (!running) void run()
    return await question.promise
  }
}
