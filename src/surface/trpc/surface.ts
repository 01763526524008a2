/**
 * The tRPC surface: calls and batches. tRPC's own adapter creates a fetch Request for each, which costs
 * more than the rest of a call. So it serves only the rare streams.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import type { AnyTRPCRouter } from '@trpc/server'
import { MAX_BATCH } from '../../../client/src/encoding.ts'
import { methodNotSupported, problem, toProblem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import { inSpan } from '../../observe/span.ts'
import { proceduresOf } from '../../procedure/call.ts'
import { decodeInput } from '../../procedure/procedure.ts'
import type { Match, Surface } from '../pipeline.ts'
import {
  acceptsLines,
  batchReply,
  checkBatch,
  envelope,
  HEADERS,
  inputsOf,
  linesOf,
  namesOf,
  type Outcome,
} from './protocol.ts'

/** The name in the log and the metrics of any procedure that does not exist. */
const UNKNOWN = 'unknown'

const PREFIX = '/trpc'

interface TrpcMatch extends Match {
  names: string[]
  method: 'GET' | 'POST'
  isBatch: boolean
  /** The input in the URL: a text, unless it is missing or repeated. */
  input: unknown
  headers: IncomingHttpHeaders
}

/** Returns the surface of a router's procedures below `/trpc`. */
export function trpcSurface(router: AnyTRPCRouter): Surface<TrpcMatch> {
  const procedures = new Map(proceduresOf(router).map((procedure) => [procedure.name, procedure]))
  const isOf = (type: 'query' | 'mutation') => (name: string) => procedures.get(name)?.type === type
  const loggedNameOf = (name: string) => (procedures.has(name) ? name : UNKNOWN)
  return {
    name: 'trpc',
    prefix: PREFIX,
    encodeError: (error) => envelope({ error }),
    match({ method: sent = '', headers }, target) {
      // RFC 9110, section 9.3.2: HEAD is GET without the body, which node:http omits.
      const method = sent === 'HEAD' ? 'GET' : sent
      if (method !== 'GET' && method !== 'POST') throw methodNotSupported(sent, 'GET, HEAD, POST')
      const query = parseQuery(target.query, '&', '=', { maxKeys: 0 })
      const isBatch = query.batch === '1'
      const names = namesOf(target.path, isBatch)
      const [first = ''] = names
      const operation = {
        name: names.length > 1 ? 'batch' : loggedNameOf(first),
        route: `${PREFIX}/{procedure}`,
        calls: Math.min(names.length, MAX_BATCH),
        type: names.some(isOf('mutation')) ? ('mutation' as const) : ('query' as const),
        readsBody: method === 'POST',
        headers: HEADERS,
      }
      return { operation, names, method, isBatch, input: query.input, headers }
    },
    async reply(match, context, body) {
      const { operation, names, method, isBatch, headers } = match
      if (names.length > 1) {
        const isMixed = operation.type === 'mutation' && names.some(isOf('query'))
        checkBatch(names, isMixed, headers['idempotency-key'])
      }
      if (method === 'POST' && !headers['content-type']) throw problem('mediaType')
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
        if (acceptsLines(headers)) throw new Problem('BAD_REQUEST', 'JSON lines need a batch')
        return { status: 200, headers: HEADERS, body: envelope({ output: await call(0) }) }
      }
      const outcomeOf = async (operation: string, index: number): Promise<Outcome> => {
        try {
          return { operation, status: 200, output: await call(index) }
        } catch (thrown) {
          const error = toProblem(thrown)
          return { operation, status: error.status, error }
        }
      }
      // Clients send single calls as batches, too: the span of the request is that of the call.
      const running =
        names.length === 1
          ? [outcomeOf(operation.name, 0)]
          : names.map(loggedNameOf).map((name, at) => inSpan(name, () => outcomeOf(name, at)))
      const outcomes = await Promise.all(running)
      const reply = batchReply(outcomes)
      if (!acceptsLines(headers)) return reply
      return { ...reply, status: 200, headers: HEADERS, body: await linesOf(router, outcomes) }
    },
  }
}
