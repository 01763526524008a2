/** Rare requests of tRPC, by tRPC's own adapter: streams of JSON lines, and connection parameters. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { MAX_BATCH } from '../../../client/src/encoding.ts'
import { toProblem } from '../../errors/problem.ts'
import type { Context } from '../../procedure/context.ts'
import type { Reply, Report } from '../pipeline.ts'

export const JSON_LINES = 'application/jsonl'

/** A request as the tRPC surface has parsed it, so that tRPC's adapter parses it alike. */
interface StreamRequest {
  /** The names of the procedures. */
  names: string[]
  method: 'GET' | 'POST'
  isBatch: boolean
  /** Whether the client accepts JSON lines. */
  isStream: boolean
  /** Connection parameters (https://trpc.io/docs/server/websockets): only checked for their form. */
  connectionParams: unknown
  /** The query parameter `input`, or the body. */
  text: unknown
}

/**
 * Returns the response of tRPC's own adapter, in full. It is not sent while it is made, because the
 * limit on unsent bytes applies to whole responses.
 */
export async function serveStream(
  router: AnyTRPCRouter,
  endpoint: string,
  context: Context,
  { names, method, isBatch, isStream, connectionParams, text }: StreamRequest,
  report: Report,
): Promise<Omit<Reply, 'headers'>> {
  // In the path as it was sent, the URL parser would resolve `..`, and call another procedure.
  const url = new URL(`${endpoint}/${names.map(encodeURIComponent)}`, 'http://localhost')
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
    endpoint,
    router,
    req: new Request(url, { method, headers, body }),
    createContext: () => context,
    maxBatchSize: MAX_BATCH,
    onError: ({ error }) => report(toProblem(error)),
  })
  return { status: response.status, body: await response.text() }
}
