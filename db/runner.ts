/** What executes the statements of a database, of a transaction, or of a session that holds a lock. */
import type { QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import type { Plan } from './plan.ts'
import type { Statement } from './session.ts'

/** Outside a transaction that is the queue, and on one session the `SessionRunner` of transaction.ts. */
export interface Runner {
  /**
   * Returns the output of a plan for an input. Outside a transaction there are more attempts: up to three, and
   * six after a conflict of transactions; of what writes only after an attempt that certainly had no effect. Throws
   * DuplicateError, DatabaseUnavailableError, and the reason of the deadline.
   */
  run<Input, Output>(plan: Plan<Input, Output>, input: Input, deadline: Deadline): Promise<Output>
  /** Executes one statement. Throws the errors of db/errors.ts, and the reason of the deadline. */
  execute<Row>(statement: Statement<Row>): Promise<QueryResult<Row>>
}
