/** Work that happens as a whole or not at all. */
import { setImmediate } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import { isSqlite } from './columns.ts'
import type { Deadline } from './deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'
import { gather, share } from './gather.ts'
import { refuseInside, runInside } from './inside.ts'
import type { Database } from './tables.ts'

/** Works in one transaction of the embedded engine at most: nothing else runs meanwhile. */
const MAX_GROUP = 200

const SAVEPOINT = CompiledQuery.raw('savepoint work')
const UNDO = CompiledQuery.raw('rollback to work')
const RELEASE = CompiledQuery.raw('release work')

type Work<Result> = (transaction: Database) => Promise<Result>

/**
 * What the work gives, once it is committed. Nothing of it happened when this throws, unless the
 * error says that it may have. On MySQL the deadlines of its statements bound it. On the embedded
 * engine, where every commit waits for the disk, concurrent works share a transaction, each undone
 * alone if it fails: so work must not wait for anything but the transaction it is given. What reaches
 * outside it, or begins another transaction, throws. While another process holds the write lock, it
 * waits until its deadline, or as long as the engine does.
 */
export async function inTransaction<Result>(
  db: Database,
  work: Work<Result>,
  deadline?: Deadline,
): Promise<Result> {
  refuseInside()
  if (!isSqlite(db)) return await db.transaction().execute((it) => runUncommitted(it, work))
  return await new Promise((resolve, reject) => {
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

/** Works that run concurrently in one transaction at most. */
const MAX_SHARED = 100

/** Work for a transaction that it may share. It uses no deadline but the one that it is given. */
type SharedWork<Result> = (transaction: Database, deadline: Deadline) => Promise<Result>

/**
 * Runs work in a transaction with other such work, concurrently: their inserts share statements, and
 * all share a commit. Returns the result once that is committed; undefined where one of several works
 * failed. Then none of them has an effect that is known, and each caller must look, and try alone.
 * Work that has the transaction to itself throws what it throws.
 */
export async function inSharedTransaction<Result>(
  db: Database,
  work: SharedWork<Result>,
  deadline: Deadline,
): Promise<{ result: Result } | undefined> {
  const settled = await runShared(db, work, deadline)
  return settled as { result: Result } | undefined // it is what this work returned
}

const runShared = gather<SharedWork<unknown>, { result: unknown } | undefined>({
  most: MAX_SHARED,
  lane: () => '',
  async ask(db, works, deadline) {
    const runAll = async (transaction: Database) => {
      share(transaction)
      const settled = await Promise.allSettled(works.map((work) => work(transaction, deadline)))
      return settled.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return { result: outcome.value }
      })
    }
    try {
      return await inTransaction(db, runAll, deadline)
    } catch (error) {
      if (works.length === 1) throw error
      return works.map(() => undefined)
    }
  },
})

/** Runs the work on a server that undoes it with its connection: before the commit nothing happened. */
async function runUncommitted<Result>(transaction: Database, work: Work<Result>): Promise<Result> {
  try {
    return await runInside(() => work(transaction))
  } catch (error) {
    const isLost = error instanceof DatabaseUnavailableError && !error.hadNoEffect
    if (!isLost || error instanceof DatabaseTimeoutError) throw error
    throw new DatabaseUnavailableError(error.cause, true)
  }
}

interface Member {
  /** Does the work, and gives what tells its caller so. */
  run(transaction: Database): Promise<() => void>
  reject(error: unknown): void
  /** Takes the work out of the queue: from then on its deadline does not end it. */
  leave(): void
}

/** The works that wait for a transaction. */
const queues = new WeakMap<Database, Set<Member>>()

async function runAll(db: Database, queue: Set<Member>): Promise<void> {
  while (queue.size > 0) {
    await setImmediate() // all requests that are there by now, and those that only read
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
    for (const tell of done) tell()
  } catch (error) {
    for (const member of pending) {
      member.leave()
      member.reject(error)
    }
  }
}
