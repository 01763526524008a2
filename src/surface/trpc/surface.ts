/**
 * The tRPC surface: calls and batches (https://trpc.io/docs/rpc). tRPC's own adapter creates a fetch Request for
 * each, which costs more than the rest of a call. So it serves only the rare streams.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { MAX_BATCH, transformer } from '../../../client/src/encoding.ts'
import { methodNotSupported, Problem, problem, toProblem } from '../../errors/problem.ts'
import { jsonHeaders } from '../../http/headers.ts'
import { decodeInput, proceduresOf } from '../../procedure/procedure.ts'
import type { Match, Outcome, Reply, Surface } from '../pipeline.ts'

// The body is JSON or JSON lines, by trpc-accept or Accept.
const HEADERS = [...jsonHeaders, 'Vary', 'Origin, trpc-accept, accept']
const JSON_LINES = 'application/jsonl'

/** The path of a request, with the names of its procedures. */
const PATH = /^\/trpc(?:\/(.*))?$/s

interface TrpcMatch extends Match {
  names: string[]
  method: 'GET' | 'POST'
  isBatch: boolean
  /** The input in the URL: a text, unless it is missing or repeated. */
  input: unknown
  requestHeaders: IncomingHttpHeaders
}

/** Returns the surface of a router's procedures below `/trpc`. */
export function trpcSurface(router: AnyTRPCRouter): Surface<TrpcMatch> {
  const procedures = new Map(proceduresOf(router).map((procedure) => [procedure.name, procedure]))
  const isOf = (type: 'query' | 'mutation') => (name: string) => procedures.get(name)?.type === type
  // The log and the metrics have one name for all procedures that do not exist.
  const loggedNameOf = (name: string) => (procedures.has(name) ? name : 'unknown')
  return {
    name: 'trpc',
    encodeError: (error) => envelope({ error }),
    match({ method: sent = '', headers: requestHeaders }, target) {
      const path = PATH.exec(target.path)
      if (!path) return undefined
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const method = sent === 'HEAD' ? 'GET' : sent
      if (method !== 'GET' && method !== 'POST') throw methodNotSupported(sent, 'GET, HEAD, POST')
      const query = parseQuery(target.query, '&', '=', { maxKeys: 0 })
      const isBatch = query.batch === '1'
      const names = namesOf(path[1] ?? '', isBatch)
      const [first = ''] = names
      const operation = {
        name: names.length > 1 ? 'batch' : loggedNameOf(first),
        route: '/trpc/{procedure}',
        calls: Math.min(names.length, MAX_BATCH),
        type: names.some(isOf('mutation')) ? ('mutation' as const) : ('query' as const),
        readsBody: method === 'POST',
        headers: HEADERS,
      }
      return { operation, names, method, isBatch, input: query.input, requestHeaders }
    },
    async reply(match, context, body) {
      const { operation, names, method, isBatch, requestHeaders } = match
      if (names.length > 1) {
        const isMixed = operation.type === 'mutation' && names.some(isOf('query'))
        checkBatch(names, isMixed, requestHeaders['idempotency-key'])
      }
      if (method === 'POST' && !requestHeaders['content-type']) throw problem('mediaType')
      const inputs = inputsOf(method === 'GET' ? match.input : body, method, isBatch)
      const call = async (index: number): Promise<unknown> => {
        const name = names[index] as string
        const procedure = procedures.get(name)
        if (!procedure) {
          throw new Problem('NOT_FOUND', `There is no procedure with the name ${name}`)
        }
        const accepted = procedure.type === 'mutation' ? 'POST' : 'GET'
        if (method !== accepted) throw methodNotSupported(method, accepted)
        const encoded = inputs[index] // which a call may lack
        return await procedure.run(context, encoded === undefined ? encoded : decodeInput(encoded))
      }
      if (!isBatch) {
        if (acceptsLines(requestHeaders))
          throw new Problem('BAD_REQUEST', 'JSON lines need a batch')
        return { status: 200, headers: HEADERS, body: envelope({ output: await call(0) }) }
      }
      const outcomeOf = async (index: number): Promise<Outcome> => {
        const operation = loggedNameOf(names[index] as string)
        try {
          return { operation, status: 200, output: await call(index) }
        } catch (thrown) {
          const error = toProblem(thrown)
          return { operation, status: error.status, error }
        }
      }
      const outcomes = await Promise.all([...names.keys()].map(outcomeOf))
      const reply = batchReply(outcomes)
      if (!acceptsLines(requestHeaders)) return reply
      return { ...reply, status: 200, headers: HEADERS, body: await linesOf(router, outcomes) }
    },
  }
}

/** As in @trpc/server, whose clients send one of the two headers. */
const acceptsLines = ({ 'trpc-accept': own, accept = '' }: IncomingHttpHeaders): boolean =>
  String(own ?? accept)
    .split(',')
    .some((type) => type.trim() === JSON_LINES)

/** Returns the names of the procedures in a path. Throws BAD_REQUEST for an invalid one. */
function namesOf(encoded: string, isBatch: boolean): string[] {
  try {
    const text = decodeURIComponent(encoded)
    return isBatch ? text.split(',') : [text]
  } catch (cause) {
    throw problem('invalidUrl', cause)
  }
}

/** Throws BAD_REQUEST for a batch that is too long, mixes queries and mutations, or has an Idempotency-Key. */
function checkBatch(names: string[], isMixed: boolean, idempotencyKey: unknown): void {
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
function inputsOf(text: unknown, method: string, isBatch: boolean): Record<number, unknown> {
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

/** Returns the form of an output or an error. */
const envelope = ({ output, error }: Pick<Outcome, 'output' | 'error'>): string =>
  error
    ? `{"error":${JSON.stringify(transformer.serialize(error.shape))}}`
    : `{"result":{"data":${JSON.stringify(transformer.serialize(output))}}}`

/** Returns the reply to a batch, with the status of all its calls, or else 207 (RFC 4918, section 11.1), as in tRPC. */
function batchReply(outcomes: Outcome[]): Reply {
  const [{ status }] = outcomes as [Outcome]
  const isMixed = outcomes.some((other) => other.status !== status)
  // If any call of the batch may be repeated, the batch has its Retry-After.
  const headers = outcomes.find(({ error }) => error?.headers.length)?.error?.headers ?? []
  return {
    status: isMixed ? 207 : status,
    headers: [...HEADERS, ...headers],
    body: `[${outcomes.map(envelope)}]`,
    calls: outcomes,
  }
}

/**
 * Returns the outcomes as JSON lines (https://trpc.io/docs/client/links/httpBatchStreamLink), which tRPC's
 * own adapter writes. They are sent as a whole: the limit on unsent bytes applies to whole responses.
 */
async function linesOf({ _def }: AnyTRPCRouter, outcomes: Outcome[]): Promise<string> {
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
