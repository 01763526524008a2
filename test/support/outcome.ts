/** What a call came to, in one form for both surfaces. */
import { TRPCClientError } from '@trpc/client'
import type { Answer } from './rest.ts'

/** The pets that a call gave, integers as bigints, or its error as the interface has it. */
export type Outcome =
  | { pets: unknown }
  | { code: string | undefined; message: string; status: number | undefined }

export async function ofRest(call: Promise<Answer>): Promise<Outcome> {
  const { status, body } = await call
  if (status >= 400) return body as Outcome
  return { pets: Array.isArray(body) ? body.map(withBigints) : withBigints(body as object) }
}

export async function ofTrpc(call: Promise<unknown>): Promise<Outcome> {
  try {
    return { pets: await call }
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error
    return { code: error.data?.code, message: error.message, status: error.data?.httpStatus }
  }
}

function withBigints(pet: object): object {
  const fields = Object.entries(pet).map(([name, value]) => [
    name,
    typeof value === 'number' ? BigInt(value) : value,
  ])
  return Object.fromEntries(fields)
}
