/** What executes the statements of a database, of a transaction, or of a session that holds a lock. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import type { Plan, Use } from './plan.ts'

/** Outside a transaction that is the queue, and on one session the `SessionRunner` of transaction.ts. */
export interface Runner {
  /**
   * Returns the output of a plan for an input. Outside a transaction there are more attempts, as `pauseOrThrow` of
   * retry.ts says; of what writes only after one that certainly had no effect. Throws DuplicateError,
   * DatabaseUnavailableError, and the reason of the deadline.
   */
  run<Input, Output>(plan: Plan<Input, Output>, input: Input, deadline: Deadline): Promise<Output>
  /**
   * Executes one statement; without a deadline, the database has its timeout. `use` is what it needs a session for, by
   * default to read for a query of Kysely that reads. Throws the errors of db/errors.ts, and the reason of the deadline.
   */
  execute<Row>(
    statement: CompiledQuery<Row>,
    deadline?: Deadline,
    use?: Use,
  ): Promise<QueryResult<Row>>
}
