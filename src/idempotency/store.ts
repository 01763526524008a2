/** Makes something once per Idempotency-Key, however often it is asked for. */
import { hash as hashOf } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { parse, stringify } from 'devalue'
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import type { Deadline } from '../../db/deadline.ts'
import { DuplicateError, LockedError } from '../../db/errors.ts'
import { inserts } from '../../db/inserts.ts'
import { lookUp } from '../../db/lookup.ts'
import { retry } from '../../db/retry.ts'
import { execute, statement, type Value } from '../../db/statement.ts'
import type { Database, Tables } from '../../db/tables.ts'
import { inSharedTransaction, inTransaction } from '../../db/transaction.ts'

/** Rows removed in one statement: each touches pages of its own, and SQLite holds up the process. */
const CLEANING_BATCH = 100

/** Milliseconds between two such statements, in which others have the database. */
const CLEANING_PAUSE = 10

/** Milliseconds between two rounds of cleaning. */
const CLEANING_INTERVAL = 10 * 60_000

/** A request with a key, which counts for its API key alone. */
export interface OnceRequest {
  apiKeyId: bigint
  key: string
  operation: string
  /** The validated input: its fields are in the order of its schema. */
  input: unknown
}

/** The output of this request or of the first one with the key, or why nothing was made. */
export type Outcome<Output> = { output: Output } | 'running' | 'different'

/** Makes the output with the stores of a transaction. */
export type Make<Stores, Output> = (stores: Stores, deadline: Deadline) => Promise<Output>

export interface Idempotency<Stores> {
  /**
   * Runs `make` in a transaction that also keeps the key and the output. Where the key was used
   * before, it returns the output of that request; `running` while that request is running, and
   * `different` where it was another one. With `oneStatement`, concurrent calls share a transaction.
   * Throws what `make` throws, and DatabaseUnavailableError after three attempts, which the key
   * makes safe.
   */
  once<Output>(
    request: OnceRequest,
    deadline: Deadline,
    make: Make<Stores, Output>,
    options?: { oneStatement?: boolean },
  ): Promise<Outcome<Output>>
  /** Ends the regular removal of what is older than the lifetime. */
  stop(): void
}

/**
 * The keys of a database, each kept for `lifetime` milliseconds; `createStores` makes the stores of a
 * transaction.
 */
export function createIdempotency<Stores>(
  db: Database,
  createStores: (db: Database) => Stores,
  lifetime: number,
  log: Logger,
): Idempotency<Stores> {
  const running = new Set<string>()
  let isCleaning = false
  let isStopped = false
  const timer = setInterval(async () => {
    if (isCleaning) return
    isCleaning = true
    try {
      await removeOld(db, Date.now() - lifetime, () => isStopped)
    } catch (error) {
      // At a stop the database may be closed in the middle of a round.
      if (!isStopped) log.warn({ err: error }, 'Could not remove old idempotency keys')
    }
    isCleaning = false
  }, CLEANING_INTERVAL).unref()

  return {
    async once(request, deadline, make, { oneStatement = false } = {}) {
      const name = `${request.apiKeyId} ${request.key}`
      if (running.has(name)) return 'running'
      const { apiKeyId, key, operation, input } = request
      const row = {
        apiKeyId,
        hash: hashOf('sha256', key),
        operation,
        fingerprint: fingerprintOf(input),
      }
      const makeIn = (transaction: Database, end: Deadline) => make(createStores(transaction), end)
      const work = () => attempt(db, lifetime, row, deadline, makeIn, oneStatement)
      running.add(name)
      try {
        return await retry(work, { repeatable: true, deadline })
      } finally {
        running.delete(name)
      }
    },
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}

/** Another request has kept the same key, or is about to: nothing was made here. */
class TakenError extends Error {}

interface Key {
  apiKeyId: bigint
  hash: string
}

interface NewRow extends Key {
  operation: string
  fingerprint: string
}

type Making<Output> = (transaction: Database, deadline: Deadline) => Promise<Output>

const findRow = lookUp<Key, Selectable<Tables['idempotency_keys']>>({
  select: (db, keys) =>
    db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where((eb) => eb.or(keys.map((value) => eb.and(columnsOf(value))))),
  nameOf: (key) =>
    'hash' in key ? `${key.apiKeyId} ${key.hash}` : `${key.api_key_id} ${key.key_hash}`,
})

const columnsOf = (value: Value<Key>) => ({
  api_key_id: value(({ apiKeyId }) => apiKeyId),
  key_hash: value(({ hash }) => hash),
})

const insertRow = inserts('idempotency_keys', (row: NewRow & { answer: string }) => ({
  api_key_id: row.apiKeyId,
  key_hash: row.hash,
  operation: row.operation,
  fingerprint: row.fingerprint,
  answer: row.answer,
  created_at: BigInt(Date.now()),
}))

const keepAnswer = statement((db, value: Value<Key & { answer: string }>) =>
  db
    .updateTable('idempotency_keys')
    .set({ answer: value(({ answer }) => answer) })
    .where((eb) => eb.and(columnsOf(value as Value<Key>))),
)

/** Keeps the key. Throws TakenError, since no other unique index can refuse this row. */
async function keepKey(
  transaction: Database,
  row: NewRow,
  answer: string,
  deadline: Deadline,
): Promise<void> {
  try {
    await insertRow(transaction, { ...row, answer }, deadline)
  } catch (error) {
    const isTaken = error instanceof DuplicateError || error instanceof LockedError
    throw isTaken ? new TakenError(undefined, { cause: error }) : error
  }
}

async function attempt<Output>(
  db: Database,
  lifetime: number,
  row: NewRow,
  deadline: Deadline,
  make: Making<Output>,
  oneStatement: boolean,
): Promise<Outcome<Output>> {
  for (let mayShare = oneStatement; ; mayShare = false) {
    const known = await findRow(db, row, deadline)
    if (known && known.created_at > BigInt(Date.now() - lifetime)) {
      const isSame = known.operation === row.operation && known.fingerprint === row.fingerprint
      // The same operation returned it before.
      return isSame ? { output: parse(known.answer) as Output } : 'different'
    }
    try {
      if (known || !mayShare) return await makeAlone(db, row, deadline, make, known?.id)
      const made = await makeShared(db, row, deadline, make)
      if (made) return made
    } catch (error) {
      if (!(error instanceof TakenError)) throw error
      if (error.cause instanceof LockedError) return 'running'
    }
    // The key was kept since the look, or a concurrent call made the shared transaction fail.
  }
}

/** Keeps the key after the output, which saves a statement; undefined where others made it fail. */
async function makeShared<Output>(
  db: Database,
  row: NewRow,
  deadline: Deadline,
  make: Making<Output>,
): Promise<{ output: Output } | undefined> {
  const work = async (transaction: Database, deadline: Deadline) => {
    const output = await make(transaction, deadline)
    await keepKey(transaction, row, stringify(output), deadline)
    return output
  }
  const made = await inSharedTransaction(db, work, deadline)
  return made && { output: made.result }
}

/** Keeps the key first, so that nothing is done for a key that another instance is using. */
async function makeAlone<Output>(
  db: Database,
  row: NewRow,
  deadline: Deadline,
  make: Making<Output>,
  expiredId: bigint | undefined,
): Promise<{ output: Output }> {
  const work = async (transaction: Database) => {
    if (expiredId !== undefined) {
      const remove = transaction.deleteFrom('idempotency_keys').where('id', '=', expiredId)
      await execute(transaction, remove, deadline)
    }
    await keepKey(transaction, row, '', deadline)
    const output = await make(transaction, deadline)
    await keepAnswer(transaction, { ...row, answer: stringify(output) }, deadline)
    return { output }
  }
  return await inTransaction(db, work, deadline)
}

/** SHA-256 of an input. The names of its fields are in it, for they tell what was left out. */
function fingerprintOf(input: unknown): string {
  const text = JSON.stringify(input, (_name, value) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  return hashOf('sha256', text)
}

/**
 * Removes the keys kept before `time`, some at a time, with pauses: neither a statement nor the
 * round as a whole holds anybody up. Ends early when it is stopped.
 */
async function removeOld(db: Database, time: number, isStopped: () => boolean): Promise<void> {
  while (!isStopped()) {
    const rows = await db
      .selectFrom('idempotency_keys')
      .select('id')
      .where('created_at', '<', BigInt(time))
      .orderBy('created_at')
      .limit(CLEANING_BATCH)
      .execute()
    if (rows.length === 0) return
    const ids = rows.map(({ id }) => id)
    await db.deleteFrom('idempotency_keys').where('id', 'in', ids).execute()
    await setTimeout(CLEANING_PAUSE, undefined, { ref: false })
  }
}
