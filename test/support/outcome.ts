/** The outcome of a call, in one form for both surfaces. */
import { TRPCClientError } from '@trpc/client'
import type { Answer } from './rest.ts'

/**
 * The output of a call, with 64-bit integers as bigints and dates as texts, or the Error of the
 * interface.
 */
export type Outcome =
  | { output: unknown }
  | { code: string | undefined; message: string; status: number | undefined }

/** The outcome of a call on REST, where each integer of an output has 64 bits. */
export async function ofRest(call: Promise<Answer>): Promise<Outcome> {
  const { status, body } = await call
  if (status >= 400) return body as Outcome // the client has checked it against the document
  return { output: changed(body, (item) => (typeof item === 'number' ? BigInt(item) : item)) }
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
  changed(output, (item) => (item instanceof Date ? item.toISOString() : item))

/** Returns a copy of a value in which the fields at any depth are those that `change` returns. */
export function changed(value: unknown, change: (item: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => changed(item, change))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([field, item]) => [
    field,
    changed(change(item), change),
  ])
  return Object.fromEntries(fields)
}
