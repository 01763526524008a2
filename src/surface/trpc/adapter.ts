/** Streams of JSON lines (https://trpc.io/docs/client/links/httpBatchStreamLink), by tRPC's own adapter. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { toProblem } from '../../errors/catalogue.ts'
import type { Context } from '../../procedure/context.ts'
import type { Reply, Report } from '../pipeline.ts'

export const JSON_LINES = 'application/jsonl'

/**
 * Returns the response of tRPC's adapter, in full: the limit on unsent bytes applies to whole responses.
 * The adapter only writes it: `runs` are the calls of a plain request, which it names by their index.
 */
export async function serveStream(
  { _def }: AnyTRPCRouter,
  runs: ((index: number) => Promise<unknown>)[],
  { method, isBatch }: { method: 'GET' | 'POST'; isBatch: boolean },
  context: Context,
  report: Report,
): Promise<Omit<Reply, 'headers'>> {
  // The method fits this type. Where it does not fit the procedure, the call itself fails.
  const type = method === 'GET' ? 'query' : 'mutation'
  const procedures = runs.map((run) =>
    Object.assign(({ batchIndex }: { batchIndex: number }) => run(batchIndex), { _def: { type } }),
  )
  const url = `http://localhost/${[...runs.keys()]}${isBatch ? '?batch=1' : ''}`
  const headers = { 'Content-Type': 'application/json', 'trpc-accept': JSON_LINES }
  const response = await fetchRequestHandler({
    endpoint: '',
    // The adapter uses these parts of a router.
    router: { _def: { ..._def, procedures: { ...procedures } } } as unknown as AnyTRPCRouter,
    req: new Request(url, { method, headers }),
    createContext: () => context,
    onError: ({ error }) => report(toProblem(error)),
  })
  return { status: response.status, body: await response.text() }
}
