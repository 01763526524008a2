/** Transactions: work on one session, whose statements the database keeps or undoes together. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { Database, RootDatabase } from './database.ts'
import { type Deadline, within } from './deadline.ts'
import { ConflictError, DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'
import { guarded } from './guard.ts'
import type { Plan, Statements } from './plan.ts'
import type { Runner } from './runner.ts'
import type { Session } from './session.ts'

const OVER = new Error('The transaction is over: its work must await every statement')

/**
 * Runs work in a transaction, and returns its result after the commit. If it throws, the work had no effect,
 * unless the error says that it may have had one. Code that the work starts belongs to the transaction, even
 * if that code runs later. It must not use another connection, and must not begin another transaction: both
 * throw. Throws the failure of a statement even if the work ignores it, because the database has ended the
 * transaction. Throws the reason of the deadline, which limits the whole transaction.
 */
export async function inTransaction<Result>(
  db: RootDatabase,
  work: (transaction: Database) => Promise<Result>,
  deadline?: Deadline,
): Promise<Result> {
  return await db.runner.withSession('write', deadline, (session, deadline) => {
    const runner = new SessionRunner(session, db.runner)
    const transaction = { kysely: db.kysely, engine: db.engine, runner }
    return transact(session, deadline, async () => {
      // It ends after its statements: of one that still runs, the session would not know the end.
      const result = await guarded(() => work(transaction)).finally(() => runner.end())
      if (runner.failure) throw runner.failure
      return result
    })
  })
}

/** Runs work on one session, without a transaction: for a lock that a session holds. */
export const onSession = <Result>(
  db: RootDatabase,
  work: (session: Database) => Promise<Result>,
): Promise<Result> =>
  db.runner.withSession('write', undefined, (session) =>
    work({ kysely: db.kysely, engine: db.engine, runner: new SessionRunner(session, db.runner) }),
  )

/**
 * Runs work between the begin and the commit of a transaction on a session. If it throws, the work had no
 * effect, unless the error says that it may have had one.
 */
export async function transact<Result>(
  session: Session,
  deadline: Deadline,
  work: () => Promise<Result>,
): Promise<Result> {
  let result: Result
  try {
    await session.begin(deadline)
    result = await work()
  } catch (error) {
    await session.rollback(deadline)
    // A server rolls back a transaction with its connection, so before the commit it has no effect. After a timeout
    // there is no time for another attempt.
    const isLost = error instanceof DatabaseUnavailableError && !error.hadNoEffect
    if (!isLost || error instanceof DatabaseTimeoutError) throw error
    const Failure = error instanceof ConflictError ? ConflictError : DatabaseUnavailableError
    throw new Failure(error.cause, true)
  }
  try {
    await session.commit(deadline)
    return result
  } catch (error) {
    await session.rollback(deadline)
    throw error
  }
}

/** The statements of one session, one after another. Once the database has ended its transaction, none is sent: it would be outside. */
class SessionRunner implements Runner {
  readonly #timeout: number
  readonly #session: Session
  readonly #statements: Statements
  /** Settles once the statements have ended that were begun or wait. */
  #last: Promise<unknown> = Promise.resolve()
  #isOver = false
  /** Why the transaction has ended. */
  failure: DatabaseUnavailableError | undefined

  constructor(session: Session, { timeout, statements }: RootDatabase['runner']) {
    this.#session = session
    this.#timeout = timeout
    this.#statements = statements
  }

  async run<Input, Output>(
    plan: Plan<Input, Output>,
    input: Input,
    deadline: Deadline,
  ): Promise<Output> {
    if (plan.commitTogether) throw new Error('A transaction has no transactions')
    const [result] = await this.#inTurn(deadline, () =>
      this.#statements.run(plan, [input], this.#session, deadline),
    )
    return plan.output(result as never) // the one of the input
  }

  async execute<Row>(
    statement: CompiledQuery<Row>,
    deadline?: Deadline,
  ): Promise<QueryResult<Row>> {
    return await within(deadline, this.#timeout, (deadline) =>
      this.#inTurn(deadline, () => this.#session.execute<Row>(statement, deadline)),
    )
  }

  /** Runs a statement after those before it. One that waits leaves at its deadline. */
  #inTurn<Result>(deadline: Deadline, run: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const result = deadline.race(before).then(async () => {
      if (this.#isOver) throw OVER
      if (this.failure) throw this.failure
      const { isInTransaction } = this.#session
      try {
        return await run()
      } catch (error) {
        if (isInTransaction && error instanceof DatabaseUnavailableError) this.failure = error
        throw error
      }
    })
    this.#last = Promise.allSettled([before, result])
    return result
  }

  /** Rejects the statements that wait or come, and resolves once none runs. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#last
  }
}
