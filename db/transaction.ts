/** Transactions: work on one session, whose statements the database keeps or undoes together. */
import { type QueryResult, Transaction } from 'kysely'
import type { Database } from './database.ts'
import { Deadline } from './deadline.ts'
import { ConflictError, DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'
import { guarded, refuseInTransaction } from './guard.ts'
import { Lanes } from './lanes.ts'
import { PartialError, type WorkPlan } from './plan.ts'
import type { Session, Statement } from './session.ts'
import type { Tables } from './tables.ts'

const OVER = new Error('The transaction is over: its work must await every statement')

type Work<Result> = (transaction: Database) => Promise<Result>

/**
 * Runs work in a transaction, and returns its result after the commit. If it throws, the work had no effect,
 * unless the error says that it may have had one. Code that the work starts belongs to the transaction, even
 * if that code runs later. It must not use another connection, and must not begin another transaction: both
 * throw. Throws the failure of a statement even if the work ignores it, because the database has ended the
 * transaction. Throws the reason of the deadline, which limits the whole transaction.
 */
export async function inTransaction<Result>(
  db: Database,
  work: Work<Result>,
  deadline?: Deadline,
): Promise<Result> {
  refuseInTransaction()
  using own = new Deadline(deadline ? Number.POSITIVE_INFINITY : db.lanes.timeout)
  const session = await db.lanes.borrow('write', deadline ?? own)
  try {
    return await transact(db, session, work, deadline ?? own)
  } finally {
    db.lanes.giveBack(session, 'write')
  }
}

/** Work for a transaction that it shares with other such works. It must use this deadline, and no other. */
export interface SharedWork<Output> {
  run(transaction: Database, deadline: Deadline): Promise<Output>
}

interface WorkOn<Output> {
  db: Database
  work: SharedWork<Output>
}

const MAX_WORKS = 100

/** Transactions that works share. */
export const sharedTransactions: WorkPlan<WorkOn<unknown>, unknown> = {
  use: 'write',
  maxSize: { inProcess: MAX_WORKS, server: MAX_WORKS },
  run: runWorks,
}

/**
 * Runs work in a transaction with other such works, which run concurrently: their inserts share statements,
 * and all of them share a commit. Returns the result of the work after the commit. Work that fails beside
 * others throws ConflictError, and had no effect: alone, it will show whether the failure is its own. The
 * others run again without it. If the transaction itself fails, all of them throw ConflictError, and the
 * effect is unknown. Work that is alone in the transaction throws its own errors.
 */
export async function shareTransaction<Output>(
  db: Database,
  work: SharedWork<Output>,
  deadline: Deadline,
): Promise<Output> {
  return (await db.lanes.share(sharedTransactions, { db, work }, deadline)) as Output // that of this work
}

/** Runs works in one transaction on a session. */
async function runWorks(
  session: Session,
  works: WorkOn<unknown>[],
  deadline: Deadline,
): Promise<unknown[]> {
  const [{ db }] = works as [WorkOn<unknown>] // all are of one database
  const runAll = (transaction: Database) => runInside(transaction, works, deadline)
  try {
    return await transact(db, session, runAll, deadline)
  } catch (error) {
    throw works.length === 1 || error instanceof PartialError
      ? error
      : new ConflictError(error, false)
  }
}

/** Returns the outputs of works in their transaction. Throws PartialError if some of several failed by themselves. */
async function runInside(
  transaction: Database,
  works: WorkOn<unknown>[],
  deadline: Deadline,
): Promise<unknown[]> {
  const all = works.map(({ work }) => work.run(transaction, deadline))
  // The transaction must not end while some of the works still run.
  const outcomes = await Promise.allSettled(all)
  const failures = new Map<number, unknown>()
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') failures.set(index, outcome.reason)
  }
  // If the database failed, no work is to blame: each is repeated alone.
  const isOfDatabase = failures.values().some((error) => error instanceof DatabaseUnavailableError)
  const areSome = failures.size > 0 && failures.size < works.length
  if (areSome && !isOfDatabase) throw new PartialError(failures)
  return await Promise.all(all)
}

/** Runs work on one session, without a transaction: for a lock that a session holds. */
export async function onSession<Result>(db: Database, work: Work<Result>): Promise<Result> {
  using deadline = new Deadline(db.lanes.timeout)
  const session = await db.lanes.borrow('write', deadline)
  try {
    return await work(databaseOn(db, session))
  } finally {
    db.lanes.giveBack(session, 'write')
  }
}

async function transact<Result>(
  db: Database,
  session: Session,
  work: Work<Result>,
  deadline: Deadline,
): Promise<Result> {
  const guardedSession = new TransactionSession(session)
  let result: Result
  try {
    await session.begin(deadline)
    const transaction = databaseOn(db, guardedSession)
    // It ends after its statements: of one that still runs, the session would not know the end.
    const end = () => transaction.lanes.end(OVER)
    result = await guarded(async () => await work(transaction)).finally(end)
    if (guardedSession.failure) throw guardedSession.failure
  } catch (error) {
    await session.rollback(deadline)
    // A server rolls back a transaction with its connection, so before the commit it has no effect.
    const isLost = error instanceof DatabaseUnavailableError && !error.hadNoEffect
    if (!isLost || error instanceof DatabaseTimeoutError) throw error
    throw new DatabaseUnavailableError(error.cause, true)
  }
  try {
    await session.commit(deadline)
    return result
  } catch (error) {
    await session.rollback(deadline)
    throw error
  }
}

/** The session of a transaction: once the database has ended that, no statement is sent, which would be outside. */
class TransactionSession implements Session {
  readonly #session: Session
  failure: DatabaseUnavailableError | undefined
  constructor(session: Session) {
    this.#session = session
  }

  async execute<Row>(statement: Statement, deadline: Deadline): Promise<QueryResult<Row>> {
    if (this.failure) throw this.failure
    try {
      return await this.#session.execute<Row>(statement, deadline)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) this.failure = error
      throw error
    }
  }

  begin = refuse
  commit = refuse
  rollback = refuse
}

async function refuse(): Promise<never> {
  throw new Error('A transaction has no transactions')
}

/** What Kysely asks of the properties of a transaction, which uses its executor alone. */
const PROPERTIES = { config: {}, driver: {}, dialect: {} } as never

/** Returns the database on one session, with one lane: its statements run one after another. */
function databaseOn(db: Database, session: Session): Database {
  const { timeout, isInProcess } = db.lanes
  const lanes = new Lanes(
    { take: () => session, prepare() {}, giveBack() {}, end() {} },
    { size: 1, timeout, isInProcess, root: db.lanes },
  )
  const executor = db
    .getExecutor()
    .withConnectionProvider({ provideConnection: (consumer) => consumer(lanes.connection) })
  const inside = Object.assign(
    new Transaction<Tables>({ ...(PROPERTIES as object), executor } as never),
    { lanes },
  )
  lanes.db = inside
  return inside
}
