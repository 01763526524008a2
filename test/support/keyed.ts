/** Mutations with an Idempotency-Key, called without a surface. */
import type { RootDatabase } from '../../db/database.ts'
import type { Deadline } from '../../db/deadline.ts'
import {
  Call,
  type KeyedWrites,
  type Operation,
  type Shared,
  type Stores,
  type Work,
} from '../../src/procedure/call.ts'
import { DatabaseKeyedWrites } from '../../src/procedure/keyed-writes.ts'

interface Request {
  holder: bigint
  key: string
  operation: string
  input: unknown
}

/** Returns a function that runs work once for each key. The output is not checked. */
export const onceOf =
  (keyedWrites: KeyedWrites) =>
  <Output>(
    { holder, key, operation, input }: Request,
    deadline: Deadline,
    work: Work<Output>,
  ): Promise<Output> => {
    const call = new Call({ keyedWrites } as Shared)
    call.operation = { name: operation, check: (output) => output } as Operation
    call.caller = { keyId: holder, holder, readOnly: false }
    call.deadline = deadline
    call.input = input
    return keyedWrites.run(call, key, work)
  }

/** Returns the mutations of a database, whose keys are valid for a minute; `stores` of a transaction is itself. */
export const keyedWritesOf = (db: RootDatabase): KeyedWrites =>
  new DatabaseKeyedWrites(db, (inside) => inside as unknown as Stores, 60_000)
