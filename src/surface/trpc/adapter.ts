/** Rare requests of tRPC, with the help of tRPC itself: streams of JSON lines, and connection parameters. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { parseConnectionParamsFromString } from '@trpc/server/http'
import { MAX_BATCH } from '../../../client/src/encoding.ts'
import { toProblem } from '../../errors/problem.ts'
import type { Context } from '../../procedure/context.ts'
import type { Reply, Report } from '../pipeline.ts'
import { type Call, type Inputs, runCall } from './batch.ts'

export const JSON_LINES = 'application/jsonl'

/**
 * Checks the form of connection parameters (https://trpc.io/docs/server/websockets), which have no
 * effect. Throws PARSE_ERROR.
 */
export function checkConnectionParams(text: unknown): void {
  if (text !== undefined) parseConnectionParamsFromString(String(text))
}

/** A request for a stream as the tRPC surface has parsed it. */
interface StreamRequest {
  method: 'GET' | 'POST'
  isBatch: boolean
  calls: Call[]
  inputs: Inputs
}

/**
 * Returns the response of tRPC's own adapter, in full. It is not sent while it is made, because the
 * limit on unsent bytes applies to whole responses. The adapter only writes the response: the calls
 * and their inputs are those of a plain request.
 */
export async function serveStream(
  router: AnyTRPCRouter,
  endpoint: string,
  context: Context,
  { method, isBatch, calls, inputs }: StreamRequest,
  report: Report,
): Promise<Omit<Reply, 'headers'>> {
  // The URL names each call by its index: the URL parser would resolve a name such as `..`.
  const indexes = calls.keys().map(String).toArray()
  const url = new URL(`${endpoint}/${indexes}`, 'http://localhost')
  if (isBatch) url.searchParams.set('batch', '1')
  const headers = { 'Content-Type': 'application/json', 'trpc-accept': JSON_LINES }
  const response = await fetchRequestHandler({
    endpoint,
    router: routerOf(router, indexes, method, ({ batchIndex: index }) =>
      runCall(calls[index] as Call, context, inputs, index),
    ),
    req: new Request(url, { method, headers }),
    createContext: () => context,
    maxBatchSize: MAX_BATCH,
    onError: ({ error }) => report(toProblem(error)),
  })
  return { status: response.status, body: await response.text() }
}

/** Returns a router that calls `run` for each of these names, and has the settings of another router. */
function routerOf(
  { _def }: AnyTRPCRouter,
  names: string[],
  method: 'GET' | 'POST',
  run: (call: { batchIndex: number }) => Promise<unknown>,
): AnyTRPCRouter {
  // The method fits this type. Where it does not fit the procedure, the call itself fails.
  const type = method === 'GET' ? 'query' : 'mutation'
  const procedure = Object.assign(run, { _def: { type } })
  const procedures = Object.fromEntries(names.map((name) => [name, procedure]))
  // The adapter uses these parts of a router.
  return { _def: { ..._def, procedures } } as unknown as AnyTRPCRouter
}
