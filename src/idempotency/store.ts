/** Makes something once per Idempotency-Key, however often it is asked for. */
import { hash as hashOf } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { parse, stringify } from 'devalue'
import type { ExpressionBuilder } from 'kysely'
import type { Logger } from 'pino'
import type { Deadline } from '../../db/deadline.ts'
import { DuplicateError, LockedError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import { execute, statement, type Value } from '../../db/statement.ts'
import type { Database, Tables } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'

/** Rows removed in one statement: each touches pages of its own, and SQLite holds up the process. */
const CLEANING_BATCH = 100

/** Milliseconds between two such statements, in which others have the database. */
const CLEANING_PAUSE = 10

/** Milliseconds between two rounds of cleaning. */
const CLEANING_INTERVAL = 10 * 60_000

/** Who asks for what: a key counts per API key. */
export interface OnceRequest {
  apiKeyId: bigint
  key: string
  operation: string
  /** The validated input: its fields are in the order of its schema. */
  input: unknown
}

/** What came of it, now or before; or why nothing was made. */
export type Outcome<Output> = { output: Output } | 'running' | 'different'

export interface Idempotency<Stores> {
  /**
   * Runs `make` with the stores of a transaction that also keeps the key and the output, unless the key was used
   * before: then it gives the output of that time. `running` when the same key is being used at
   * this moment, `different` when it was for another request. Throws what `make` throws, and
   * DatabaseUnavailableError; it is tried again where that may help, for the key makes it safe.
   */
  once<Output>(
    request: OnceRequest,
    deadline: Deadline,
    make: (stores: Stores) => Promise<Output>,
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
    async once(request, deadline, make) {
      const name = `${request.apiKeyId} ${request.key}`
      if (running.has(name)) return 'running'
      running.add(name)
      try {
        const work = () => attempt(db, lifetime, request, deadline, (it) => make(createStores(it)))
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

/** Somebody else has kept the same key, or is about to: nothing was made here. */
class TakenError extends Error {}

interface NewRow {
  apiKeyId: bigint
  hash: string
  operation: string
  fingerprint: string
}

/** The condition for the row of the same key. */
const isOf = (value: Value<NewRow>) => (eb: ExpressionBuilder<Tables, 'idempotency_keys'>) =>
  eb.and({
    api_key_id: value(({ apiKeyId }) => apiKeyId),
    key_hash: value(({ hash }) => hash),
  })

const findRow = statement((db, value: Value<NewRow>) =>
  db
    .selectFrom('idempotency_keys')
    .select(['id', 'operation', 'fingerprint', 'answer', 'created_at'])
    .where(isOf(value)),
)

const insertRow = statement((db, value: Value<NewRow>) =>
  db.insertInto('idempotency_keys').values({
    api_key_id: value(({ apiKeyId }) => apiKeyId),
    key_hash: value(({ hash }) => hash),
    operation: value(({ operation }) => operation),
    fingerprint: value(({ fingerprint }) => fingerprint),
    answer: '',
    created_at: value(() => BigInt(Date.now())),
  }),
)

const keepAnswer = statement((db, value: Value<NewRow & { output: unknown }>) =>
  db
    .updateTable('idempotency_keys')
    .set({ answer: value(({ output }) => stringify(output)) })
    .where(isOf(value)),
)

async function attempt<Output>(
  db: Database,
  lifetime: number,
  { apiKeyId, key, operation, input }: OnceRequest,
  deadline: Deadline,
  make: (transaction: Database) => Promise<Output>,
): Promise<Outcome<Output>> {
  const row = {
    apiKeyId,
    hash: hashOf('sha256', key),
    operation,
    fingerprint: fingerprintOf(input),
  }
  for (;;) {
    const { rows } = await findRow(db, row, deadline)
    const [known] = rows
    if (known && known.created_at > BigInt(Date.now() - lifetime)) {
      const isSame = known.operation === operation && known.fingerprint === row.fingerprint
      // It is what the same operation once gave.
      return isSame ? { output: parse(known.answer) as Output } : 'different'
    }
    try {
      return await inTransaction(
        db,
        async (transaction) => {
          if (known) {
            const remove = transaction.deleteFrom('idempotency_keys').where('id', '=', known.id)
            await execute(transaction, remove, deadline)
          }
          // First, so that a unique index that speaks up here can be no other than the key's.
          await insertRow(transaction, row, deadline).catch((error) => {
            const isTaken = error instanceof DuplicateError || error instanceof LockedError
            throw isTaken ? new TakenError(undefined, { cause: error }) : error
          })
          const output = await make(transaction)
          await keepAnswer(transaction, { ...row, output }, deadline)
          return { output }
        },
        deadline,
      )
    } catch (error) {
      if (!(error instanceof TakenError)) throw error
      if (error.cause instanceof LockedError) return 'running'
      // It was kept since we looked: now it can be found.
    }
  }
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
