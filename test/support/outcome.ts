/** The outcome of a call, in one form for both surfaces. */
import { TRPCClientError } from '@trpc/client'
import { isInt64, type OperationName } from './operations.ts'
import type { Answer } from './rest.ts'

/**
 * The output of a call, with 64-bit integers as bigints and dates as texts, or the Error of the
 * interface.
 */
export type Outcome =
  | { output: unknown }
  | { code: string | undefined; message: string; status: number | undefined }

/** The outcome of an operation on REST. */
export async function ofRest(name: OperationName, call: Promise<Answer>): Promise<Outcome> {
  const { status, body } = await call
  if (status >= 400) return body as Outcome // the client has checked it against the document
  const withBigint = (field: string, item: unknown) =>
    typeof item === 'number' && isInt64(name, field) ? BigInt(item) : item
  return { output: changed(body, withBigint) }
}

/** The outcome of an operation on tRPC. */
export async function ofTrpc(call: Promise<unknown>): Promise<Outcome> {
  try {
    return { output: asOnRest(await call) }
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error
    return { code: error.data?.code, message: error.message, status: error.data?.httpStatus }
  }
}

/** Returns an output of tRPC with its dates as the texts that REST has. */
export const asOnRest = (output: unknown): unknown =>
  changed(output, (_field, item) => (item instanceof Date ? item.toISOString() : item))

/** Returns a copy of a value in which the fields at any depth are those that `change` returns. */
function changed(value: unknown, change: (field: string, item: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => changed(item, change))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([field, item]) => [
    field,
    changed(change(field, item), change),
  ])
  return Object.fromEntries(fields)
}
