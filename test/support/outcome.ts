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
  return { output: withBigints(name, body) }
}

/** The outcome of an operation on tRPC. */
export async function ofTrpc(call: Promise<unknown>): Promise<Outcome> {
  try {
    return { output: withTexts(await call) }
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error
    return { code: error.data?.code, message: error.message, status: error.data?.httpStatus }
  }
}

function withBigints(name: OperationName, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withBigints(name, item))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([field, item]) => [
    field,
    typeof item === 'number' && isInt64(name, field) ? BigInt(item) : withBigints(name, item),
  ])
  return Object.fromEntries(fields)
}

function withTexts(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(withTexts)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, item]) => [field, withTexts(item)]))
}
