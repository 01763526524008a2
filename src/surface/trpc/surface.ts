/**
 * The tRPC surface: calls and batches in tRPC's protocol (https://trpc.io/docs/rpc). tRPC's own adapter
 * creates a fetch Request for each, which costs more than the rest of a call. So it serves only the
 * rare requests of adapter.ts.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import { methodNotSupported, problem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { jsonHeaders } from '../../http/headers.ts'
import { decodeInput } from '../../procedure/decode.ts'
import { definitionOf, type Run, runOf } from '../invoke.ts'
import type { Reply, Surface } from '../pipeline.ts'
import { JSON_LINES, serveStream } from './adapter.ts'
import { type Call, checkBatch, type Inputs, type Outcome, runBatch } from './batch.ts'

/** The name in the log and the metrics of any procedure that does not exist. */
const UNKNOWN = 'unknown'

const PREFIX = '/trpc'

// The body is JSON or JSON lines, by trpc-accept or Accept.
const HEADERS = [...jsonHeaders, 'Vary', 'Origin, trpc-accept, accept']

type Method = 'GET' | 'POST'

/** Returns the body of an error, with the errors of the input's fields. */
const envelope = (error: Problem): string =>
  `{"error":${JSON.stringify(transformer.serialize(error.shape))}}`

interface Procedure {
  type: 'query' | 'mutation'
  run: Run
}

/** Returns the surface of a router's procedures below `/trpc`. */
export function trpcSurface(router: AnyTRPCRouter): Surface {
  const procedures = new Map(
    Object.entries<AnyTRPCProcedure>(router._def.procedures).map(([name, procedure]) => [
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
      const method = methodOf(req.method ?? '')
      const query = parseQuery(target.query, '&', '=', { maxKeys: 0 })
      const isBatch = query.batch === '1'
      const names = namesOf(target.path, isBatch)
      const [first = ''] = names
      const calls = names.slice(0, MAX_BATCH).map((name) => find(procedures, name, method))
      const types = new Set(names.flatMap((name) => procedures.get(name)?.type ?? []))
      const isStream = acceptsLines(req.headers)
      return {
        operation: names.length > 1 ? 'batch' : procedures.has(first) ? first : UNKNOWN,
        route: `${PREFIX}/{procedure}`,
        calls: calls.length,
        type: types.has('mutation') ? 'mutation' : 'query',
        readsBody: method === 'POST',
        headers: HEADERS,
        async reply(context, body, report) {
          if (names.length > 1) checkBatch(names, types, req.headers['idempotency-key'])
          if (method === 'POST' && !req.headers['content-type']) throw problem('mediaType')
          const text = method === 'GET' ? query.input : body
          const inputs = readInputs(text, method, isBatch)
          if (isStream) {
            const runs = calls.map(
              ({ run }) =>
                (at: number) =>
                  run(context, inputs, at),
            )
            const reply = await serveStream(router, runs, { method, isBatch }, context, report)
            return { ...reply, headers: HEADERS }
          }
          if (isBatch) {
            const { outcomes, logged } = await runBatch(calls, context, inputs, report)
            return { ...encodeBatch(outcomes), ...(logged && { calls: logged }) }
          }
          const output = await (calls[0] as Call).run(context, inputs, 0) // there is one
          return { status: 200, headers: HEADERS, body: resultText(output) }
        },
      }
    },
  }
}

/** As in @trpc/server: `trpc-accept` is the type, and `Accept` is a list of types. */
const acceptsLines = ({ 'trpc-accept': own, accept = '' }: IncomingHttpHeaders): boolean =>
  own === undefined
    ? accept.split(',').some((type) => type.split(';')[0]?.trim() === JSON_LINES)
    : own === JSON_LINES

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
    throw problem('invalidUrl', cause)
  }
}

/** Returns the call of a procedure. It fails if there is none, or if the method does not fit its type. */
function find(procedures: ReadonlyMap<string, Procedure>, name: string, method: Method): Call {
  const procedure = procedures.get(name)
  const accepted = procedure?.type === 'mutation' ? 'POST' : 'GET'
  return {
    name: procedure ? name : UNKNOWN,
    async run(context, inputs, index) {
      if (!procedure) throw new Problem('NOT_FOUND', `There is no procedure with the name ${name}`)
      if (method !== accepted) throw methodNotSupported(method, accepted)
      return await procedure.run(context, inputs(index))
    },
  }
}

/**
 * Returns a function that returns the input of each call by its index in the batch. That function throws
 * PARSE_ERROR for malformed JSON, so that each call of the batch has this error. Throws BAD_REQUEST for
 * a batch whose input is not an object.
 */
function readInputs(text: unknown, method: Method, isBatch: boolean): Inputs {
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
  const inputs = Object.entries(raw)
  return (index) => {
    const input = inputs.find(([place]) => place === String(index))
    return input && decode(input[1])
  }
}

function decode(encoded: unknown): unknown {
  try {
    if (typeof encoded !== 'string') throw new TypeError('Not a text')
    return decodeInput(encoded)
  } catch (cause) {
    throw cause instanceof Problem ? cause : problem('malformed', cause)
  }
}

const resultText = (output: unknown) =>
  `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** The status of a batch is that of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
function encodeBatch(outcomes: Outcome[]): Reply {
  const [first] = outcomes
  const isMixed = outcomes.some(({ status }) => status !== first?.status)
  // If any call of the batch may be repeated, the batch has its Retry-After.
  const headers = outcomes.find(({ error }) => error?.headers.length)?.error?.headers
  const texts = outcomes.map(({ error, output }) => (error ? envelope(error) : resultText(output)))
  return {
    status: isMixed ? 207 : (first?.status ?? 200),
    headers: headers ? [...HEADERS, ...headers] : HEADERS,
    body: `[${texts}]`,
  }
}
