/** Transactions on SQLite. Each commit waits for the disk, so concurrent works share one. */
import { setImmediate } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import type { Deadline } from '../../deadline.ts'
import type { Database } from '../../tables.ts'
import { runInTransaction } from '../../transaction.ts'

/** Maximum number of works in one transaction: no other statement runs meanwhile. */
const MAX_GROUP = 200

const SAVEPOINT = CompiledQuery.raw('savepoint work')
const UNDO = CompiledQuery.raw('rollback to work')
const RELEASE = CompiledQuery.raw('release work')

interface Member {
  /** Runs the work, and returns the function that reports the commit to the caller. */
  run(transaction: Database): Promise<() => void>
  reject(error: unknown): void
}

/** The works that wait for a transaction. */
const queues = new WeakMap<Database, Set<Member>>()

/**
 * Runs work in a transaction, which it may share with concurrent works. They run one after another, each
 * with a savepoint, to which it is rolled back if it fails. While another process holds the write lock,
 * work waits until its deadline, or until the timeout of the driver.
 */
export function inSqliteTransaction<Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
  deadline: Deadline | undefined,
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const queue = queues.get(db) ?? new Set()
  const member: Member = {
    async run(transaction) {
      if (deadline?.reason) throw deadline.reason
      const result = await runInTransaction(() => work(transaction))
      return () => resolve(result)
    },
    reject,
  }
  queue.add(member)
  deadline?.onGiveUp((reason) => {
    if (queue.delete(member)) reject(reason) // from its begin on, its deadline does not end it
  })
  if (!queues.has(db)) {
    queues.set(db, queue)
    void runAll(db, queue)
  }
  return promise
}

async function runAll(db: Database, queue: Set<Member>): Promise<void> {
  while (queue.size > 0) {
    await setImmediate() // all requests of this turn join the group, and reads run first
    await runGroup(db, queue)
  }
  queues.delete(db)
}

async function runGroup(db: Database, queue: Set<Member>): Promise<void> {
  // Until the transaction begins, members join, and leave at their deadlines.
  let group = [...queue]
  const done: (() => void)[] = []
  try {
    await db.transaction().execute(async (transaction) => {
      group = [...queue].slice(0, MAX_GROUP)
      for (const member of group) queue.delete(member)
      for (const member of group) {
        await transaction.executeQuery(SAVEPOINT)
        try {
          done.push(await member.run(transaction))
        } catch (error) {
          // If the error ended the whole transaction, this throws, and no work has an effect.
          await transaction.executeQuery(UNDO).catch(() => Promise.reject(error))
          member.reject(error)
        }
        await transaction.executeQuery(RELEASE)
      }
    })
    for (const report of done) report()
  } catch (error) {
    for (const member of group) {
      queue.delete(member)
      member.reject(error) // without effect for one that was rejected already
    }
  }
}
