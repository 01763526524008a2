/** tRPC's protocol (https://trpc.io/docs/rpc): how a request names and has its calls, and the form of answers. */
import type { IncomingHttpHeaders } from 'node:http'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import { methodNotSupported, problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { jsonHeaders } from '../../http/headers.ts'
import { decodeInput } from '../../procedure/procedure.ts'
import type { Reply } from '../pipeline.ts'

export type Method = 'GET' | 'POST'

// The body is JSON or JSON lines, by trpc-accept or Accept.
export const HEADERS = [...jsonHeaders, 'Vary', 'Origin, trpc-accept, accept']
export const JSON_LINES = 'application/jsonl'

/** As in @trpc/server: `trpc-accept` is the type, and `Accept` is a list of types. */
export const acceptsLines = ({ 'trpc-accept': own, accept = '' }: IncomingHttpHeaders): boolean =>
  own === undefined
    ? accept.split(',').some((type) => type.split(';')[0]?.trim() === JSON_LINES)
    : own === JSON_LINES

/** RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits. */
export function methodOf(method: string): Method {
  if (method === 'POST' || method === 'GET') return method
  if (method === 'HEAD') return 'GET'
  throw methodNotSupported(method, 'GET, HEAD, POST')
}

/** Returns the names of the procedures in a path below `/trpc`. Throws BAD_REQUEST for an invalid path. */
export function namesOf(path: string, isBatch: boolean): string[] {
  const encoded = path.slice(1)
  if (/^\w*$/.test(encoded)) return [encoded]
  try {
    const text = decodeURIComponent(encoded)
    if (!URL.canParse(`/${encoded}`, 'http://localhost')) throw new TypeError('Not a path')
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
 * Returns a function that returns the input of each call by its index in the batch. That function throws
 * PARSE_ERROR for malformed JSON, so that each call of the batch has this error. Throws BAD_REQUEST for
 * a batch whose input is not an object.
 */
export function inputsOf(
  text: unknown,
  method: Method,
  isBatch: boolean,
): (index: number) => unknown {
  // The input of a query is optional. A mutation without a body is malformed.
  if (text === undefined && method === 'GET') return () => undefined
  let raw: unknown
  try {
    raw = JSON.parse(text as string) // JSON.parse throws for a value that is no string, too
  } catch (cause) {
    return () => {
      throw problem('malformed', cause)
    }
  }
  if (!isBatch) return () => decode(raw)
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    const message =
      'The input of a batch must be an object, with the inputs of its calls by their index'
    throw new Problem('BAD_REQUEST', message)
  }
  const inputs = new Map(Object.entries(raw))
  return (index) => (inputs.has(`${index}`) ? decode(inputs.get(`${index}`)) : undefined)
}

function decode(encoded: unknown): unknown {
  try {
    if (typeof encoded !== 'string') throw new TypeError('Not a text')
    return decodeInput(encoded)
  } catch (cause) {
    throw cause instanceof Problem ? cause : problem('malformed', cause)
  }
}

/** The output of a call, or its error. */
export interface Outcome {
  status: number
  output?: unknown
  error?: Problem
}

/** Returns the form of an outcome. */
export const envelope = ({ output, error }: Pick<Outcome, 'output' | 'error'>): string =>
  error
    ? `{"error":${JSON.stringify(transformer.serialize(error.shape))}}`
    : `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** Returns the reply to a batch, with the status of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
export function batchReply(outcomes: Outcome[]): Reply & { errors: Problem[] } {
  const errors = outcomes.flatMap(({ error }) => error ?? [])
  const [{ status } = { status: 200 }] = outcomes
  // If any call of the batch may be repeated, the batch has its Retry-After.
  const headers = errors.find(({ headers }) => headers.length > 0)?.headers
  return {
    status: outcomes.every((outcome) => outcome.status === status) ? status : 207,
    headers: headers ? [...HEADERS, ...headers] : HEADERS,
    body: `[${outcomes.map(envelope)}]`,
    errors,
  }
}
