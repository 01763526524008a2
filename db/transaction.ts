/** Work that happens as a whole or not at all. */
import { setImmediate } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import { isSqlite } from './columns.ts'
import type { Deadline } from './deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'
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
 * engine, where every commit waits for the disk, works that meet share a transaction, each undone
 * alone if it fails: so work must not wait for anything but the transaction it is given. What reaches
 * outside it, or begins another transaction, throws.
 */
export async function inTransaction<Result>(
  db: Database,
  work: Work<Result>,
  deadline?: Deadline,
): Promise<Result> {
  refuseInside()
  if (!isSqlite(db)) return await db.transaction().execute((it) => runUncommitted(it, work))
  return await new Promise((resolve, reject) => {
    const member: Member = {
      async run(transaction) {
        if (deadline?.reason) throw deadline.reason
        const result = await runInside(() => work(transaction))
        return () => resolve(result)
      },
      reject,
    }
    const group = waiting.get(db)
    if (group) group.push(member)
    else {
      waiting.set(db, [member])
      void runWaiting(db)
    }
  })
}

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
}

const waiting = new WeakMap<Database, Member[]>()

async function runWaiting(db: Database): Promise<void> {
  await setImmediate() // all requests that are there by now
  const group = waiting.get(db) ?? []
  waiting.delete(db)
  while (group.length > 0) await runGroup(db, group.splice(0, MAX_GROUP))
}

async function runGroup(db: Database, group: Member[]): Promise<void> {
  const done: (() => void)[] = []
  const pending = new Set(group)
  try {
    await db.transaction().execute(async (transaction) => {
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
    for (const { reject } of pending) reject(error)
  }
}
