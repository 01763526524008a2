/** Rows that a call asks for. */
import { Problem } from '../errors/problem.ts'

/** Returns the value. Throws NOT_FOUND with this message if it is undefined. */
export function found<Value>(value: Value | undefined, message: string): Value {
  if (value === undefined) throw new Problem('NOT_FOUND', message)
  return value
}
