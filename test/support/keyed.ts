/** Mutations with an Idempotency-Key, called without a surface. */
import type { Database, RootDatabase } from '../../db/database.ts'
import type { Deadline } from '../../db/deadline.ts'
import { DatabaseKeyedWrites } from '../../src/idempotency/keyed-writes.ts'
import type { KeyedWrites, Operation, Shared, Work } from '../../src/procedure/call.ts'

interface Request {
  holder: bigint
  key: string
  operation: string
  input: unknown
}

/** Returns a function that runs work once for each key. The output is not checked. */
export const onceOf =
  <Stores>(keyedWrites: KeyedWrites<Stores>) =>
  <Output>(
    { holder, key, operation, input }: Request,
    deadline: Deadline,
    work: Work<Stores, Output>,
  ): Promise<Output> => {
    const service = { keyedWrites } as Shared<Stores>
    const caller = { keyId: holder, holder, readOnly: false }
    const unchecked = { name: operation, checkOutput: (output) => output } as Operation
    const request = { service, caller, deadline, idempotencyHeader: undefined }
    const stores = undefined as Stores // the work has those of its transaction
    const call = { ...request, operation: unchecked, input, stores, written: undefined }
    return keyedWrites.runWork(call, key, work)
  }

/** Returns the mutations of a database, whose keys are valid for a minute; `stores` of a transaction is itself. */
export const keyedWritesOf = (db: RootDatabase): KeyedWrites<Database> =>
  new DatabaseKeyedWrites(db, (inside) => inside, 60_000)
