/**
 * tRPC on HTTP: single calls and batches, as tRPC's clients send them
 * (https://trpc.io/docs/rpc). tRPC's own adapter builds a fetch Request for each of them, which costs
 * more than the rest of a call; it serves only what is rare here, streams.
 */
import { parse as parseQuery } from 'node:querystring'
import { type AnyTRPCProcedure, type AnyTRPCRouter, TRPCError } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import type { Request, RequestHandler, Response } from 'express'
import { MAX_BATCH, transformer } from '../../client/src/encoding.ts'
import type { Calls } from '../calls.ts'
import {
  type ApiError,
  errorHeaders,
  errorShape,
  fieldErrors,
  malformed,
  methodNotSupported,
  toApiError,
  toTRPCError,
  unauthorized,
  unsupportedMediaType,
} from '../errors.ts'
import { answer } from '../http/answer.ts'
import { readBody } from '../http/body.ts'
import { privateHeaders } from '../http/headers.ts'
import { checkHost, targetBelow } from '../http/request.ts'
import { setCalls, setOperation } from '../http/telemetry.ts'
import type { Auth } from '../keys/auth.ts'
import type { TraceIds } from '../tracing.ts'
import type { Context } from '../trpc.ts'

/** The path below which tRPC is found. */
export const PREFIX = '/trpc'

/** One call, once it is over: what it gave, as JSON, or its error. */
type Outcome = { status: number; text: string; error?: TRPCError; ids?: TraceIds }

/** What tRPC's clients ask for in these headers changes the form of the answer. */
const VARY = 'Origin, trpc-accept, accept'

const HEADERS = [...privateHeaders, 'Vary', VARY]

const JSON_LINES = 'application/jsonl'

/** The body of an error; `fields` says what is wrong with each field of an input. */
const envelope = (error: ApiError, fields?: Record<string, string>): string =>
  `{"error":${JSON.stringify(transformer.serialize(errorShape(error, fields)))}}`

function failure(error: TRPCError): Outcome {
  const body = toApiError(error)
  return { status: body.status, text: envelope(body, fieldErrors(error)), error }
}

type Procedures = ReadonlyMap<string, AnyTRPCProcedure>

/** Serves a router below `/trpc`; all other addresses are passed on. */
export function trpcHandler(router: AnyTRPCRouter, calls: Calls): RequestHandler {
  const procedures: Procedures = new Map(Object.entries(router._def.procedures))
  const known = (name: string) => (procedures.has(name) ? name : 'unknown')

  return async (req, res, next) => {
    const target = targetBelow(PREFIX, req)
    if (!target) return next()
    setOperation(res, 'trpc', 'unknown')
    let context: Context | undefined
    try {
      checkHost(req)
      const method = methodOf(req)
      const query = parseQuery(target.query, '&', '=', { maxKeys: 0 })
      const isBatch = query.batch === '1'
      const names = namesOf(target.path, isBatch)
      const [first = '', ...others] = names
      const isSingle = others.length === 0
      setOperation(res, 'trpc', isSingle ? known(first) : 'batch')
      const begun = await calls.begin(res, Math.min(names.length, MAX_BATCH))
      context = begun
      const { auth, trace } = begun
      const isKeyed = auth.kind === 'caller'
      // One that has no key is told so as a whole, for whoever counts the 401s of those who guess.
      if (!isKeyed && !isSingle) throw unauthorized(auth)
      if (!isSingle) checkBatch(names, procedures, begun)
      const body = method === 'POST' && isKeyed ? await readBody(req, res) : undefined
      if (method === 'POST' && isKeyed && !req.headers['content-type']) throw unsupportedMediaType()
      const text = method === 'POST' ? body : query.input
      const { connectionParams } = query
      const isStream = (req.headers['trpc-accept'] ?? req.headers.accept) === JSON_LINES
      if (isStream || connectionParams !== undefined) {
        if (!isKeyed) throw unauthorized(auth)
        const request = { path: target.path, method, isBatch, isStream, connectionParams, text }
        return await serveRare(router, calls, res, begun, request)
      }
      const inputs = isKeyed ? readInputs(text, method, isBatch) : () => undefined
      const call = async (name: string, batchIndex: number): Promise<Outcome> => {
        // Each of several has a span of its own.
        const part = isSingle ? undefined : trace?.call(known(name))
        const ctx = part ? { ...begun, deadline: begun.deadline.traced(part), trace: part } : begun
        let outcome: Outcome
        try {
          const procedure = find(procedures, name, method)
          const getRawInput = async () => inputs(batchIndex)
          const { type } = procedure._def
          const signal = undefined
          const output = await procedure({ ctx, signal, getRawInput, path: name, type, batchIndex })
          outcome = { status: 200, text: resultText(output) }
        } catch (thrown) {
          const error = toTRPCError(thrown)
          calls.report(error, res)
          outcome = failure(error)
        }
        part?.end(outcome.status)
        if (part) outcome.ids = part.ids
        return outcome
      }
      const outcomes = await Promise.all(names.map(call))
      if (!isSingle) {
        setCalls(
          res,
          outcomes.map(({ status, ids }, index) => [known(names[index] ?? ''), status, ids]),
        )
      }
      send(res, outcomes, isBatch, auth)
    } catch (thrown) {
      const error = toTRPCError(thrown)
      calls.report(error, res)
      send(res, [failure(error)], false, context?.auth)
    } finally {
      context?.deadline.clear()
    }
  }
}

/** RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http leaves out. */
function methodOf({ method }: Request): 'GET' | 'POST' {
  if (method === 'POST' || method === 'GET') return method
  if (method === 'HEAD') return 'GET'
  throw refusedMethod(method, 'GET, HEAD, POST')
}

/** The names of the procedures that a path below `/trpc` calls: there is one address for each. */
function namesOf(path: string, isBatch: boolean): string[] {
  const encoded = path.slice(1)
  try {
    const text = decodeURIComponent(encoded)
    if (!URL.canParse(`/${encoded}`, 'http://localhost')) throw new TypeError('Not a path')
    return isBatch ? text.split(',') : [text]
  } catch (cause) {
    const message = 'The address of the request cannot be read'
    throw new TRPCError({ code: 'BAD_REQUEST', message, cause: new TypeError(message, { cause }) })
  }
}

/** Refuses a batch that is none: too long, of queries and mutations, or with a key for one creation. */
function checkBatch(names: string[], procedures: Procedures, { idempotencyHeader }: Context): void {
  const refuse = (message: string) => new TRPCError({ code: 'BAD_REQUEST', message })
  if (names.length > MAX_BATCH) throw refuse(`A batch must have at most ${MAX_BATCH} calls`)
  const types = new Set(names.flatMap((name) => procedures.get(name)?._def.type ?? []))
  if (types.size > 1) throw refuse('A batch must be of queries or of mutations, not of both')
  if (idempotencyHeader !== undefined) {
    throw refuse('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/** The procedure of a call; the method must be the one that its type goes with. */
function find(procedures: Procedures, name: string, method: 'GET' | 'POST'): AnyTRPCProcedure {
  const procedure = procedures.get(name)
  if (!procedure) {
    const message = `There is no procedure with the name ${name}`
    throw new TRPCError({ code: 'NOT_FOUND', message })
  }
  const accepted = procedure._def.type === 'query' ? 'GET' : 'POST'
  if (method !== accepted) throw refusedMethod(method, accepted)
  return procedure
}

const allowed = new WeakMap<TRPCError, string>()
function refusedMethod(method: string, allow: string): TRPCError {
  const error = methodNotSupported(method, allow)
  allowed.set(error, allow)
  return error
}

/** The inputs of the calls, by their place in the batch. What cannot be read, each call is told. */
function readInputs(text: unknown, method: string, isBatch: boolean): (index: number) => unknown {
  // A query may go without an input, but a body is what a mutation consists of.
  if (text === undefined && method === 'GET') return () => undefined
  let raw: unknown
  try {
    raw = JSON.parse(text as string) // what is no text is no JSON, and throws as well
  } catch (cause) {
    return () => {
      throw malformed(cause)
    }
  }
  if (!isBatch) return () => decode(raw)
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    const message =
      'The input of a batch must be an object, with the inputs of its calls by their index'
    throw new TRPCError({ code: 'BAD_REQUEST', message })
  }
  const inputs = Object.entries(raw)
  return (index) => {
    const input = inputs.find(([place]) => place === String(index))
    return input && decode(input[1])
  }
}

function decode(encoded: unknown): unknown {
  try {
    if (typeof encoded !== 'string') throw new TypeError('Not a text')
    return transformer.deserialize(encoded)
  } catch (cause) {
    throw malformed(cause)
  }
}

const resultText = (output: unknown) =>
  `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** The status of several is that of all of them, or 207 (RFC 4918, section 11.1), as tRPC has it. */
function send(res: Response, outcomes: Outcome[], isBatch: boolean, auth: Auth | undefined): void {
  const [first] = outcomes
  const isMixed = outcomes.some(({ status }) => status !== first?.status)
  const error = outcomes.find((outcome) => outcome.error)?.error
  const allow = error && allowed.get(error)
  const headers = [
    ...HEADERS,
    ...(error ? errorHeaders(error, auth) : []),
    ...(allow ? ['Allow', allow] : []),
  ]
  const texts = outcomes.map(({ text }) => text)
  answer(
    res,
    isMixed ? 207 : (first?.status ?? 200),
    headers,
    isBatch ? `[${texts}]` : String(texts),
  )
}

/** A request as it was understood here, so that tRPC cannot understand it otherwise. */
interface RareRequest {
  path: string
  method: 'GET' | 'POST'
  isBatch: boolean
  /** Whether the results of a batch are asked for as a stream of lines. */
  isStream: boolean
  /** Parameters of a connection: nothing here needs them, but what is none is refused. */
  connectionParams: unknown
  text: unknown
}

/**
 * What is rare, streams and parameters of a connection, by tRPC's own adapter. It is sent as one
 * answer when it is whole, so that what a client does not take is bounded as with any answer.
 */
async function serveRare(
  router: AnyTRPCRouter,
  calls: Calls,
  res: Response,
  context: Context,
  { path, method, isBatch, isStream, connectionParams, text }: RareRequest,
): Promise<void> {
  const url = new URL(PREFIX + path, 'http://localhost')
  if (isBatch) url.searchParams.set('batch', '1')
  if (method === 'GET' && typeof text === 'string') url.searchParams.set('input', text)
  if (connectionParams !== undefined) {
    url.searchParams.set('connectionParams', String(connectionParams))
  }
  const headers = {
    'Content-Type': 'application/json',
    ...(isStream && { 'trpc-accept': JSON_LINES }),
  }
  const body = method === 'POST' && typeof text === 'string' ? text : null
  const response = await fetchRequestHandler({
    endpoint: PREFIX,
    router,
    req: new globalThis.Request(url, { method, headers, body }),
    createContext: () => context,
    maxBatchSize: MAX_BATCH,
    onError: ({ error }) => calls.report(toTRPCError(error), res),
  })
  answer(res, response.status, HEADERS, await response.text())
}
