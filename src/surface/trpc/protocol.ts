/** tRPC's protocol (https://trpc.io/docs/rpc): how a request names and has its calls, and the form of answers. */
import type { IncomingHttpHeaders } from 'node:http'
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import { problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { jsonHeaders } from '../../http/headers.ts'
import type { Reply } from '../pipeline.ts'

// The body is JSON or JSON lines, by trpc-accept or Accept.
export const HEADERS = [...jsonHeaders, 'Vary', 'Origin, trpc-accept, accept']
const JSON_LINES = 'application/jsonl'

/** As in @trpc/server, whose clients send one of the two headers. */
export const acceptsLines = ({ 'trpc-accept': own, accept = '' }: IncomingHttpHeaders): boolean =>
  String(own ?? accept)
    .split(',')
    .some((type) => type.trim() === JSON_LINES)

/** Returns the names of the procedures in a path below `/trpc`. Throws BAD_REQUEST for an invalid path. */
export function namesOf(path: string, isBatch: boolean): string[] {
  try {
    const text = decodeURIComponent(path.slice(1))
    return isBatch ? text.split(',') : [text]
  } catch (cause) {
    throw problem('invalidUrl', cause)
  }
}

/** Throws BAD_REQUEST for a batch that is too long, mixes queries and mutations, or has an Idempotency-Key. */
export function checkBatch(names: string[], isMixed: boolean, idempotencyKey: unknown): void {
  const badRequest = (message: string) => new Problem('BAD_REQUEST', message)
  if (names.length > MAX_BATCH) throw badRequest(`A batch must have at most ${MAX_BATCH} calls`)
  if (isMixed) throw badRequest('A batch must be of queries or of mutations, not of both')
  if (idempotencyKey !== undefined) {
    throw badRequest('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/**
 * Returns the encoded inputs of the calls by their index. Throws PARSE_ERROR for malformed JSON, and
 * BAD_REQUEST for a batch whose input is not an object.
 */
export function inputsOf(text: unknown, method: string, isBatch: boolean): Record<number, unknown> {
  // The input of a query is optional. A mutation without a body is malformed.
  if (text === undefined && method === 'GET') return {}
  let inputs: Record<number, unknown>
  try {
    inputs = JSON.parse(text as string) // JSON.parse throws for a value that is no string, too
  } catch (cause) {
    throw problem('malformed', cause)
  }
  if (!isBatch) return { 0: inputs }
  if (typeof inputs === 'object' && inputs !== null && !Array.isArray(inputs)) return inputs
  const message =
    'The input of a batch must be an object, with the inputs of its calls by their index'
  throw new Problem('BAD_REQUEST', message)
}

/** The output of a call of a batch, or its error. */
export interface Outcome {
  /** The logged name of the procedure. */
  operation: string
  status: number
  output?: unknown
  error?: Problem
}

/** Returns the form of an output or an error. */
export const envelope = ({ output, error }: Pick<Outcome, 'output' | 'error'>): string =>
  error
    ? `{"error":${JSON.stringify(transformer.serialize(error.shape))}}`
    : `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** Returns the reply to a batch, with the status of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
export function batchReply(outcomes: Outcome[]): Reply {
  const [first] = outcomes
  const isMixed = outcomes.some(({ status }) => status !== first?.status)
  // If any call of the batch may be repeated, the batch has its Retry-After.
  const headers = outcomes.find(({ error }) => error?.headers.length)?.error?.headers ?? []
  return {
    status: isMixed ? 207 : (first?.status ?? 200),
    headers: [...HEADERS, ...headers],
    body: `[${outcomes.map(envelope)}]`,
    calls: outcomes,
  }
}

/**
 * Returns the outcomes as JSON lines (https://trpc.io/docs/client/links/httpBatchStreamLink), which tRPC's
 * own adapter writes. They are sent as a whole: the limit on unsent bytes applies to whole responses.
 */
export async function linesOf({ _def }: AnyTRPCRouter, outcomes: Outcome[]): Promise<string> {
  const procedures = outcomes.map(({ output, error }) => {
    const resolve = async () => {
      if (error) throw error
      return output
    }
    return Object.assign(resolve, { _def: { type: 'query' } })
  })
  const headers = { 'trpc-accept': JSON_LINES }
  const response = await fetchRequestHandler({
    endpoint: '',
    // The adapter uses these parts of a router. The name of a procedure is its index.
    router: { _def: { ..._def, procedures: { ...procedures } } } as unknown as AnyTRPCRouter,
    req: new Request(`http://localhost/${[...outcomes.keys()]}?batch=1`, { headers }),
  })
  return await response.text()
}
