/** Mutations with an Idempotency-Key, called without a surface. */
import type { RootDatabase } from '../../db/database.ts'
import type { Deadline } from '../../db/deadline.ts'
import { DatabaseKeyedWrites } from '../../src/idempotency/keyed-writes.ts'
import type { Call, CalledOperation, KeyedWrites, Shared, Work } from '../../src/procedure/call.ts'
import { RequestHeaders } from '../../src/procedure/headers.ts'

interface Request {
  holder: bigint
  key: string
  operation: string
  input: unknown
}

/** Returns a function that runs work once for each key. The output is not checked. */
export const onceOf =
  (keyedWrites: KeyedWrites) =>
  <Stores, Output>(
    { holder, key, operation, input }: Request,
    deadline: Deadline,
    work: Work<Call<Stores>, Output>,
  ): Promise<Output> => {
    const shared = { keyedWrites } as Shared<Stores>
    const caller = { keyId: holder, name: 'test', holder, readOnly: false }
    const described = { name: operation, rest: {} } // as JSON, its inputs are compared
    const unchecked = { ...described, checkOutput: (output) => output } as CalledOperation
    const headers = new RequestHeaders({})
    const request = {
      shared,
      caller,
      deadline,
      headers,
      idempotencyHeader: key,
      report() {},
    }
    const stores = undefined as Stores // the work has those of its transaction
    const progress = { input, written: undefined }
    return keyedWrites.runWork({ ...request, operation: unchecked, stores, progress }, work)
  }

/** Returns the mutations of a database, whose keys are valid for a minute; `stores` of a transaction is itself. */
export const keyedWritesOf = (db: RootDatabase): KeyedWrites =>
  new DatabaseKeyedWrites(db, (inside) => inside, 60_000)
