/** What a row says to a caller: that it does not exist, or that it exists already. */
import { DuplicateError } from '../../db/errors.ts'
import { Problem } from '../errors/problem.ts'

/** Returns the value. Throws NOT_FOUND with this message if it is undefined. */
export function found<Value>(value: Value | undefined, message: string): Value {
  if (value === undefined) throw new Problem('NOT_FOUND', message)
  return value
}

/**
 * Returns the result of a write. Throws CONFLICT with this message if a unique value is taken.
 * @public Resources with a unique value need it, such as test/visits.
 */
export async function unique<Result>(writing: Promise<Result>, message: string): Promise<Result> {
  try {
    return await writing
  } catch (cause) {
    throw cause instanceof DuplicateError ? new Problem('CONFLICT', message, { cause }) : cause
  }
}
