/** Errors as tRPC's clients expect them. */
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import type { ApiError } from '../errors.ts'
import { transformer } from './transformer.ts'

/** The shape of an error; `fields` says what is wrong with each field of the input. */
export function errorShape({ code, message, status }: ApiError, fields?: Record<string, string>) {
  return {
    message,
    code: TRPC_ERROR_CODES_BY_KEY[code],
    data: { code, httpStatus: status, ...(fields && { fields }) },
  }
}

/** The body of an error that no procedure threw. */
export const envelope = (error: ApiError): string =>
  JSON.stringify({ error: transformer.serialize(errorShape(error)) })
