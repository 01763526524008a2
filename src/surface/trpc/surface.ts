/**
 * The tRPC surface: calls and batches (https://trpc.io/docs/rpc). tRPC's own adapter creates a fetch Request for
 * each, which costs more than the rest of a call. So it serves only the rare streams.
 */
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { methodNotSupported, Problem, problem, toProblem } from '../../errors/problem.ts'
import type { Body } from '../../http/body.ts'
import { jsonHeaders } from '../../http/headers.ts'
import type { CallsOfRequest } from '../../procedure/call.ts'
import type { RequestHeaders } from '../../procedure/headers.ts'
import type { Operation } from '../../procedure/operation.ts'
import { MAX_BATCH, transformer } from '../../wire/encoding.ts'
import type { Answer, Match, Outcome, Surface } from '../pipeline.ts'
import { routerOf } from './functions.ts'
import { decodeInput } from './input.ts'
import { runOperation } from './run.ts'

// The body is JSON or JSON lines, by trpc-accept or Accept.
const HEADERS = [...jsonHeaders, 'Vary', 'Origin, trpc-accept, accept']
const JSON_LINES = 'application/jsonl'

/** The path of a request, with the names of its procedures. */
const PATH = /^\/trpc(?:\/(.*))?$/s

interface TrpcMatch extends Match {
  method: 'GET' | 'POST'
  /** Whether input and answer have the form of a batch, which may have one call. */
  isBatch: boolean
  /** The procedures in the path. */
  named: Named[]
  /** The input in the URL: a text, unless it is missing or repeated. */
  input: unknown
}

/** A name in the path, and its operation; undefined for a name that no procedure has. */
interface Named {
  name: string
  operation: Operation | undefined
}

/** Returns the surface of these operations below `/trpc`. `router` has their formats. */
export function trpcSurface(router: AnyTRPCRouter, operations: Operation[]): Surface<TrpcMatch> {
  const known = new Map(operations.map((operation) => [operation.name, operation]))
  return {
    name: 'trpc',
    encodeError: (error) => envelope({ error }),
    match({ method: sent = '' }, target) {
      const path = PATH.exec(target.path)
      if (!path) return undefined
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const method = sent === 'HEAD' ? 'GET' : sent
      if (method !== 'GET' && method !== 'POST') throw methodNotSupported(sent, 'GET, HEAD, POST')
      const { batch, input } = parseQuery(target.query, '&', '=', { maxKeys: 0 }) // no limit
      const isBatch = batch === '1'
      const names = namesOf(path[1] ?? '', isBatch)
      const named = names.map((name): Named => ({ name, operation: known.get(name) }))
      return {
        name: named.length > 1 ? 'batch' : (named[0]?.operation?.name ?? UNKNOWN),
        type: named.some(isMutation) ? 'mutation' : 'query',
        isPublic: named.every(({ operation }) => operation?.access.isPublic === true),
        template: '/trpc/{procedure}',
        count: Math.min(named.length, MAX_BATCH),
        readsBody: method === 'POST',
        headers: HEADERS,
        method,
        isBatch,
        named,
        input,
      }
    },
    async answer(request, match, body) {
      const { isBatch, named } = match
      if (named.length > 1) checkSeveral(named, request.idempotencyHeader)
      const asksForLines = acceptsLines(request.headers)
      if (asksForLines && !isBatch) throw new Problem('BAD_REQUEST', 'JSON lines need a batch')
      const outcomes = await Promise.all(startCalls(request, match, body))
      if (!asksForLines) return answerOf(outcomes, isBatch)
      return { status: 200, headers: HEADERS, body: await linesOf(router, outcomes), outcomes }
    },
  }
}

const UNKNOWN = 'unknown'

const isMutation = ({ operation }: Named) => operation?.type === 'mutation'

/** A call as a client has sent it, but for its input. */
interface SentCall extends Named {
  request: CallsOfRequest
  method: string
  /** The index in its batch. */
  at: number
}

// startCalls, runCall and outcomeOf have inputs, so they are not async: see `take` of Body.

/** Begins the calls of a request. */
function startCalls(
  request: CallsOfRequest,
  { method, isBatch, named, input }: TrpcMatch,
  body: Body | undefined,
): Promise<Outcome>[] {
  const inputs = inputsOf(method === 'GET' ? input : body?.take(), method, isBatch)
  return named.map((one, at) => outcomeOf({ ...one, request, method, at }, inputs[at]))
}

/** Runs one call, and returns its output. `encoded` is its input, which a call may lack. */
function runCall(sent: SentCall, encoded: unknown): Promise<unknown> {
  const { request, method, name, operation, at } = sent
  if (!operation) throw new Problem('NOT_FOUND', `There is no procedure with the name ${name}`)
  const accepted = isMutation(sent) ? 'POST' : 'GET'
  if (method !== accepted) throw methodNotSupported(method, accepted)
  // A call that waits for a middleware keeps the text, whose values may be many times as large.
  const readInput = () => (encoded === undefined ? encoded : decodeInput(encoded))
  return runOperation(operation, request, readInput, at)
}

/** Runs one call, and returns its output or its error. Never throws. */
function outcomeOf(sent: SentCall, encoded: unknown): Promise<Outcome> {
  const operation = sent.operation?.name ?? UNKNOWN
  return Promise.try(runCall, sent, encoded).then(
    (output) => ({ operation, status: 200, output }),
    (thrown) => {
      const error = toProblem(thrown)
      return { operation, status: error.status, error }
    },
  )
}

/** As in @trpc/server, whose clients send one of the two headers. */
function acceptsLines(headers: RequestHeaders): boolean {
  const accepted = headers.get('trpc-accept') ?? headers.get('accept') ?? ''
  return accepted.split(',').some((type) => type.trim() === JSON_LINES)
}

/** Returns the names of the procedures in a path. Throws BAD_REQUEST for an invalid one. */
function namesOf(encoded: string, isBatch: boolean): string[] {
  try {
    const text = decodeURIComponent(encoded)
    return isBatch ? text.split(',', MAX_BATCH + 1) : [text] // one more is refused
  } catch (cause) {
    throw problem('invalidUrl', cause)
  }
}

/** Throws BAD_REQUEST for several calls that are too many, are queries and mutations, or have an Idempotency-Key. */
function checkSeveral(named: Named[], idempotencyKey: unknown): void {
  const badRequest = (message: string) => new Problem('BAD_REQUEST', message)
  if (named.length > MAX_BATCH) throw badRequest(`A batch must have at most ${MAX_BATCH} calls`)
  const known = named.filter(({ operation }) => operation !== undefined)
  if (known.some(isMutation) && !known.every(isMutation)) {
    throw badRequest('A batch must be of queries or of mutations, not of both')
  }
  if (idempotencyKey !== undefined) {
    throw badRequest('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/**
 * Returns the encoded inputs of the calls by their index. Throws PARSE_ERROR for malformed JSON, and
 * BAD_REQUEST for a batch whose input is not an object.
 */
function inputsOf(text: unknown, method: string, isBatch: boolean): Record<number, unknown> {
  // The input of a query is optional. A mutation without a body is malformed.
  if (text === undefined && method === 'GET') return {}
  if (typeof text !== 'string') throw problem('malformed')
  let inputs: Record<number, unknown>
  try {
    inputs = JSON.parse(text)
  } catch (cause) {
    throw problem('malformed', cause)
  }
  if (!isBatch) return { 0: inputs }
  if (typeof inputs === 'object' && inputs !== null && !Array.isArray(inputs)) return inputs
  const message =
    'The input of a batch must be an object, with the inputs of its calls by their index'
  throw new Problem('BAD_REQUEST', message)
}

/** Returns the form of an output or an error. */
const envelope = ({ output, error }: Pick<Outcome, 'output' | 'error'>): string =>
  error
    ? `{"error":${JSON.stringify(transformer.serialize(error.shape))}}`
    : `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** Returns the answer, with the status of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
function answerOf(outcomes: Outcome[], isBatch: boolean): Answer {
  const [first] = outcomes as [Outcome] // a request has a call
  const { status } = first
  const isMixed = outcomes.some((other) => other.status !== status)
  // If any call of the batch may be repeated, the batch has its Retry-After.
  const headers = outcomes.find(({ error }) => error?.headers.length)?.error?.headers ?? []
  return {
    status: isMixed ? 207 : status,
    headers: [...HEADERS, ...headers],
    body: isBatch ? `[${outcomes.map(envelope)}]` : envelope(first),
    outcomes,
  }
}

/**
 * Returns the outcomes as JSON lines (https://trpc.io/docs/client/links/httpBatchStreamLink), which tRPC's
 * own adapter writes for functions that are named by their indexes. They are sent as a whole: the limit on unsent bytes applies to whole responses.
 */
async function linesOf(router: AnyTRPCRouter, outcomes: Outcome[]): Promise<string> {
  const functions = outcomes.map(({ output, error }) => ({
    type: 'query' as const,
    async call() {
      if (error) throw error
      return output
    },
  }))
  const response = await fetchRequestHandler({
    endpoint: '',
    router: routerOf(router, Object.fromEntries(functions.entries())),
    req: new Request(`http://localhost/${[...outcomes.keys()]}?batch=1`, {
      headers: { 'trpc-accept': JSON_LINES },
    }),
  })
  return await response.text()
}
