/** Mutations: each runs in a transaction, again after an attempt that certainly had no effect. */
import { parseIdempotencyKey } from '../idempotency/header.ts'
import type { Call, Work } from './call.ts'

/**
 * Runs `work` in one transaction, and returns its output, checked before the commit. It runs up to three
 * times within the deadline of the call, after a lock timeout or a lost connection, and up to six times
 * after deadlocks, if the attempt certainly had no effect. So `work` must have no effect except through the
 * stores of its call (it must not send mail), and must await nothing else, because its transaction holds
 * locks. Access to the database by other stores throws. Throws the errors of `work`, and
 * DatabaseUnavailableError.
 * @public Mutations without a key need it, such as those of test/visits.
 */
export async function write<Output>(call: Call, work: Work<Output>): Promise<Output> {
  begin(call, false)
  return await inTransaction(call, work)
}

/**
 * Creates a resource, or does a repeatable action (draft-ietf-httpapi-idempotency-key-header-07). It is
 * `write`. If the request has an Idempotency-Key, the transaction also stores the key and the output, and a
 * repetition returns this output. Throws BAD_REQUEST for an invalid key, CONFLICT while a request with the
 * key is running, UNPROCESSABLE_CONTENT for a key of another request, and the errors of `work`.
 *
 * `oneStatement` says that `work` writes with one statement, which is atomic without a transaction, and which
 * concurrent creations share:
 *
 * | key | `oneStatement` | `work` runs |
 * |---|---|---|
 * | none | no | in a transaction of its own |
 * | none | yes | without one: begin and commit are two round trips. An output that its schema rejects stays |
 * | new | no | in a transaction of its own, after the key is stored |
 * | new | yes | in a transaction with concurrent calls and their joint deadline, before the key is stored |
 * | expired, or after an attempt that failed | either | as with a new key and without `oneStatement` |
 */
export async function writeIdempotent<Output>(
  call: Call,
  work: Work<Output>,
  { oneStatement = false }: { oneStatement?: boolean } = {},
): Promise<Output> {
  begin(call, true)
  const key = parseIdempotencyKey(call.idempotencyHeader)
  if (key !== undefined) return await call.service.keyedWrites.run(call, key, work, oneStatement)
  return oneStatement ? await checked(call, work) : await inTransaction(call, work)
}

/** Notes that the call writes. Throws TypeError if that contradicts the description of its operation. */
function begin(call: Call, withKey: boolean): void {
  const { name, type, rest } = call.operation
  const is = withKey ? 'writeIdempotent' : 'write'
  if (type === 'query') throw new TypeError(`The procedure ${name} is a query, and calls ${is}(…)`)
  if ((rest?.takesKey === true) !== withKey) {
    const meta = withKey ? 'needs takesKey: true' : 'must not have takesKey'
    throw new TypeError(`The procedure ${name} calls ${is}(…), so its restMeta ${meta}`)
  }
  call.writes = true
}

const inTransaction = <Output>(call: Call, work: Work<Output>): Promise<Output> =>
  call.service.transact(
    (stores) => checked(call.inside(stores, call.deadline), work),
    call.deadline,
  )

/** Returns the checked output of the work: inside its transaction, which a wrong output rolls back. */
export async function checked<Output>(call: Call, work: Work<Output>): Promise<Output> {
  // The output of the schema has its type.
  return call.operation.check(await work(call)) as Output
}
