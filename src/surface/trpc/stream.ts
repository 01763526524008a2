/** Streams of tRPC, and parameters of a connection, which are rare: by tRPC's own adapter. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { MAX_BATCH } from '../../../client/src/encoding.ts'
import { toProblem } from '../../errors/problem.ts'
import type { Context } from '../../procedure/context.ts'
import type { Reply, Report } from '../pipeline.ts'

export const JSON_LINES = 'application/jsonl'

/** A request as it was understood here, so that tRPC cannot understand it otherwise. */
interface StreamRequest {
  path: string
  method: 'GET' | 'POST'
  isBatch: boolean
  /** Whether the results of a batch are asked for as a stream of lines. */
  isStream: boolean
  /** Parameters of a connection: nothing here needs them, but malformed ones are rejected. */
  connectionParams: unknown
  text: unknown
}

/**
 * Answers by tRPC's own adapter. The answer is sent when it is whole, so that what a client does not
 * read is bounded as with any answer.
 */
export async function serveStream(
  router: AnyTRPCRouter,
  endpoint: string,
  context: Context,
  { path, method, isBatch, isStream, connectionParams, text }: StreamRequest,
  report: Report,
): Promise<Omit<Reply, 'headers'>> {
  const url = new URL(endpoint + path, 'http://localhost')
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
