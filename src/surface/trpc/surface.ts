/**
 * The tRPC surface: calls and batches in tRPC's protocol (https://trpc.io/docs/rpc). tRPC's own adapter
 * creates a fetch Request for each, which costs more than the rest of a call. So it serves only the
 * rare requests of stream.ts.
 */
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import {
  type ApiError,
  errorShape,
  INVALID_URL,
  malformed,
  methodNotSupported,
  Problem,
  unsupportedMediaType,
} from '../../errors/problem.ts'
import { privateHeaders } from '../../http/headers.ts'
import {
  type Call,
  type Match,
  type Outcome,
  type Reply,
  type Surface,
  UNKNOWN,
} from '../pipeline.ts'
import { definitionOf, type Run, runOf } from '../run.ts'
import { JSON_LINES, serveStream } from './stream.ts'

const PREFIX = '/trpc'

// The body is JSON or JSON lines, by trpc-accept or Accept.
const HEADERS = [...privateHeaders, 'Vary', 'Origin, trpc-accept, accept']

type Method = 'GET' | 'POST'

/** Returns the body of an error, with the errors of the input's fields. */
const envelope = (error: ApiError & { fields?: Record<string, string> | undefined }): string =>
  `{"error":${JSON.stringify(transformer.serialize(errorShape(error)))}}`

interface Procedure {
  type: 'query' | 'mutation'
  run: Run
}

/** Returns the surface of a router's procedures below `/trpc`. */
export function trpcSurface(router: AnyTRPCRouter): Surface {
  const known: Record<string, AnyTRPCProcedure> = router._def.procedures
  const procedures = new Map<string, Procedure>(
    Object.entries(known).map(([name, procedure]) => [
      name,
      { type: definitionOf(procedure).type, run: runOf(name, procedure) },
    ]),
  )
  return {
    name: 'trpc',
    prefix: PREFIX,
    unmatched: UNKNOWN,
    headers: HEADERS,
    encodeError: envelope,
    match(req, target) {
      const method = methodOf(req.method)
      const query = parseQuery(target.query, '&', '=', { maxKeys: 0 })
      const isBatch = query.batch === '1'
      const names = namesOf(target.path, isBatch)
      const [first = ''] = names
      const calls = names.slice(0, MAX_BATCH).map((name) => find(procedures, name, method))
      const types = new Set(names.flatMap((name) => procedures.get(name)?.type ?? []))
      const isStream = (req.headers['trpc-accept'] ?? req.headers.accept) === JSON_LINES
      const { connectionParams } = query
      const textOf = (body: string | undefined) => {
        if (method === 'GET') return query.input
        if (!req.headers['content-type']) throw unsupportedMediaType()
        return body
      }
      const check = () => {
        if (names.length > 1) checkBatch(names, types, req.headers['idempotency-key'])
      }
      const match: Match = {
        operation: names.length > 1 ? 'batch' : procedures.has(first) ? first : UNKNOWN,
        route: `${PREFIX}/{procedure}`,
        calls,
        type: types.has('mutation') ? 'mutation' : 'query',
        readsBody: method === 'POST',
        headers: HEADERS,
        decode(body) {
          check()
          return readInputs(textOf(body), method, isBatch)
        },
        encode: (outcomes) => encode(outcomes, isBatch),
      }
      if (!isStream && connectionParams === undefined) return match
      return {
        ...match,
        async serve(context, body, report) {
          check()
          const text = textOf(body)
          const request = { path: target.path, method, isBatch, isStream, connectionParams, text }
          const reply = await serveStream(router, PREFIX, context, request, report)
          return { ...reply, headers: HEADERS }
        },
      }
    },
  }
}

/** RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits. */
function methodOf(method: string): Method {
  if (method === 'POST' || method === 'GET') return method
  if (method === 'HEAD') return 'GET'
  throw methodNotSupported(method, 'GET, HEAD, POST')
}

/** Returns the names of the procedures in a path below `/trpc`. Throws BAD_REQUEST for an invalid path. */
function namesOf(path: string, isBatch: boolean): string[] {
  const encoded = path.slice(1)
  try {
    const text = decodeURIComponent(encoded)
    if (!URL.canParse(`/${encoded}`, 'http://localhost')) throw new TypeError('Not a path')
    return isBatch ? text.split(',') : [text]
  } catch (cause) {
    throw new Problem('BAD_REQUEST', INVALID_URL, { cause: new TypeError(INVALID_URL, { cause }) })
  }
}

/** Throws BAD_REQUEST for a batch that is too long, mixes queries and mutations, or has an Idempotency-Key. */
function checkBatch(names: string[], types: Set<string>, idempotencyKey: unknown): void {
  const badRequest = (message: string) => new Problem('BAD_REQUEST', message)
  if (names.length > MAX_BATCH) throw badRequest(`A batch must have at most ${MAX_BATCH} calls`)
  if (types.size > 1) throw badRequest('A batch must be of queries or of mutations, not of both')
  if (idempotencyKey !== undefined) {
    throw badRequest('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/** Returns the call of a procedure by name: NOT_FOUND without one, METHOD_NOT_SUPPORTED for its type. */
function find(procedures: ReadonlyMap<string, Procedure>, name: string, method: Method): Call {
  const procedure = procedures.get(name)
  if (!procedure) {
    return { name, run: new Problem('NOT_FOUND', `There is no procedure with the name ${name}`) }
  }
  const accepted = procedure.type === 'query' ? 'GET' : 'POST'
  if (method !== accepted) return { name, run: methodNotSupported(method, accepted) }
  return { name, run: procedure.run }
}

/**
 * Returns a function that returns the input of each call by its index in the batch. That function throws
 * PARSE_ERROR for malformed JSON, so that each call of the batch has this error. Throws BAD_REQUEST for
 * a batch whose input is not an object.
 */
function readInputs(text: unknown, method: string, isBatch: boolean): (index: number) => unknown {
  // The input of a query is optional. A mutation without a body is malformed.
  if (text === undefined && method === 'GET') return () => undefined
  let raw: unknown
  try {
    raw = JSON.parse(text as string) // JSON.parse throws for a value that is no string, too
  } catch (cause) {
    return () => {
      throw malformed(cause)
    }
  }
  if (!isBatch) return () => decode(raw)
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    const message =
      'The input of a batch must be an object, with the inputs of its calls by their index'
    throw new Problem('BAD_REQUEST', message)
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

/** The status of a batch is that of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
function encode(outcomes: Outcome[], isBatch: boolean): Reply {
  const [first] = outcomes
  const isMixed = outcomes.some(({ status }) => status !== first?.status)
  // An error that may be repeated says when, also behind one that may not.
  const headers = outcomes.find(({ error }) => error?.headers.length)?.error?.headers
  const texts = outcomes.map(({ error, output }) => (error ? envelope(error) : resultText(output)))
  return {
    status: isMixed ? 207 : (first?.status ?? 200),
    headers: headers ? [...HEADERS, ...headers] : HEADERS,
    body: isBatch ? `[${texts}]` : String(texts),
  }
}
