/**
 * tRPC: what it has of its own in the pipeline. Calls and batches come as tRPC's clients send them
 * (https://trpc.io/docs/rpc). tRPC's own adapter makes a fetch Request of each of them, which costs
 * more than the rest of a call; it serves only what is rare here, streams.
 */
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import {
  type ApiError,
  errorShape,
  malformed,
  methodNotSupported,
  Problem,
  unsupportedMediaType,
} from '../../errors/problem.ts'
import { privateHeaders } from '../../http/headers.ts'
import {
  type Called,
  type Match,
  type Outcome,
  type Reply,
  type Surface,
  UNKNOWN,
} from '../pipeline.ts'
import { type Run, runOf } from '../run.ts'
import { JSON_LINES, serveStream } from './stream.ts'

/** The path below which tRPC is found. */
const PREFIX = '/trpc'

/** What tRPC's clients ask for in these headers changes the form of the answer. */
const HEADERS = [...privateHeaders, 'Vary', 'Origin, trpc-accept, accept']

type Method = 'GET' | 'POST'

/** The body of an error; `fields` says what is wrong with each field of an input. */
const envelope = (error: ApiError & { fields?: Record<string, string> | undefined }): string =>
  `{"error":${JSON.stringify(transformer.serialize(errorShape(error)))}}`

interface Procedure {
  type: 'query' | 'mutation'
  run: Run
}

/** The procedures of a router, below `/trpc`. */
export function trpcSurface(router: AnyTRPCRouter): Surface {
  const known: Record<string, AnyTRPCProcedure> = router._def.procedures
  const procedures = new Map<string, Procedure>(
    Object.entries(known).map(([name, procedure]) => [
      name,
      // There are no subscriptions: see operationsOf.
      { type: procedure._def.type as Procedure['type'], run: runOf(name, procedure) },
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

/** RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http leaves out. */
function methodOf(method: string): Method {
  if (method === 'POST' || method === 'GET') return method
  if (method === 'HEAD') return 'GET'
  throw methodNotSupported(method, 'GET, HEAD, POST')
}

/** The names of the procedures that a path below `/trpc` calls: each has one path. */
function namesOf(path: string, isBatch: boolean): string[] {
  const encoded = path.slice(1)
  try {
    const text = decodeURIComponent(encoded)
    if (!URL.canParse(`/${encoded}`, 'http://localhost')) throw new TypeError('Not a path')
    return isBatch ? text.split(',') : [text]
  } catch (cause) {
    const message = 'The address of the request cannot be read'
    throw new Problem('BAD_REQUEST', message, { cause: new TypeError(message, { cause }) })
  }
}

/** Refuses a batch that is too long, mixes queries and mutations, or has a key for one creation. */
function checkBatch(names: string[], types: Set<string>, idempotencyKey: unknown): void {
  const refuse = (message: string) => new Problem('BAD_REQUEST', message)
  if (names.length > MAX_BATCH) throw refuse(`A batch must have at most ${MAX_BATCH} calls`)
  if (types.size > 1) throw refuse('A batch must be of queries or of mutations, not of both')
  if (idempotencyKey !== undefined) {
    throw refuse('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/** The procedure of a call; the method must be the one that its type goes with. */
function find(procedures: ReadonlyMap<string, Procedure>, name: string, method: Method): Called {
  const procedure = procedures.get(name)
  if (!procedure) {
    return { name, run: new Problem('NOT_FOUND', `There is no procedure with the name ${name}`) }
  }
  const accepted = procedure.type === 'query' ? 'GET' : 'POST'
  if (method !== accepted) return { name, run: methodNotSupported(method, accepted) }
  return { name, run: procedure.run }
}

/** Reads the input of each call by its place in the batch. Throws PARSE_ERROR for each call if it cannot. */
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

/** The status of several calls is that of all of them, or 207 (RFC 4918, section 11.1), as tRPC has it. */
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
