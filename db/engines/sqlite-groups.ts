/** Transactions on SQLite: concurrent works share a commit. */
import { setImmediate } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import type { Deadline } from '../deadline.ts'
import { runInside } from '../inside.ts'
import type { Database } from '../tables.ts'

/** Works in one transaction at most: no other statement runs meanwhile. */
const MAX_GROUP = 200

const SAVEPOINT = CompiledQuery.raw('savepoint work')
const UNDO = CompiledQuery.raw('rollback to work')
const RELEASE = CompiledQuery.raw('release work')

/**
 * Runs work in a transaction. Every commit waits for the disk, so concurrent works share one, one
 * after another; each has a savepoint, to which it is undone if it fails. While another process holds
 * the write lock, work waits until its deadline, or as long as the driver does.
 */
export function inGroup<Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
  deadline: Deadline | undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const queue = queues.get(db) ?? new Set()
    const member: Member = {
      async run(transaction) {
        if (deadline?.reason) throw deadline.reason
        const result = await runInside(() => work(transaction))
        return () => resolve(result)
      },
      reject,
      leave() {
        queue.delete(member)
        forget?.()
      },
    }
    queue.add(member)
    const forget = deadline?.onGiveUp((reason) => {
      if (queue.delete(member)) reject(reason)
    })
    if (queues.has(db)) return
    queues.set(db, queue)
    void runAll(db, queue)
  })
}

interface Member {
  /** Does the work, and returns what tells the caller of its commit. */
  run(transaction: Database): Promise<() => void>
  reject(error: unknown): void
  /** Takes the work out of the queue: from then on its deadline does not end it. */
  leave(): void
}

/** The works that wait for a transaction. */
const queues = new WeakMap<Database, Set<Member>>()

async function runAll(db: Database, queue: Set<Member>): Promise<void> {
  while (queue.size > 0) {
    await setImmediate() // requests of this turn come into the group, and reads go first
    await runGroup(db, queue)
  }
  queues.delete(db)
}

async function runGroup(db: Database, queue: Set<Member>): Promise<void> {
  // Until it begins, members come, and leave at their deadlines.
  let pending = new Set(queue)
  const done: (() => void)[] = []
  try {
    await db.transaction().execute(async (transaction) => {
      const group = [...queue].slice(0, MAX_GROUP)
      pending = new Set(group)
      for (const member of group) member.leave()
      for (const member of group) {
        await transaction.executeQuery(SAVEPOINT)
        try {
          done.push(await member.run(transaction))
        } catch (error) {
          // Where the failure ended the whole transaction, this throws, and nothing has happened.
          await transaction.executeQuery(UNDO).catch(() => Promise.reject(error))
          pending.delete(member)
          member.reject(error)
        }
        await transaction.executeQuery(RELEASE)
      }
    })
    for (const resolve of done) resolve()
  } catch (error) {
    for (const member of pending) {
      member.leave()
      member.reject(error)
    }
  }
}
