/** Streams of JSON lines (https://trpc.io/docs/client/links/httpBatchStreamLink), by tRPC's own adapter. */
import type { AnyTRPCRouter } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { toProblem } from '../../errors/catalogue.ts'
import type { Problem } from '../../errors/problem.ts'
import type { Context } from '../../procedure/context.ts'
import type { Reply } from '../pipeline.ts'
import { HEADERS, JSON_LINES, type Method } from './protocol.ts'

/**
 * Returns the response of tRPC's adapter, in full: the limit on unsent bytes applies to whole responses.
 * The adapter only writes it: `call` makes the calls of a plain request, which it names by their index.
 */
export async function streamed(
  { _def }: AnyTRPCRouter,
  call: (index: number) => Promise<unknown>,
  { names, method, isBatch }: { names: string[]; method: Method; isBatch: boolean },
  context: Context,
): Promise<Reply> {
  // The method fits this type. Where it does not fit the procedure, the call itself fails.
  const type = method === 'GET' ? 'query' : 'mutation'
  const procedures = names.map(() =>
    Object.assign(({ batchIndex }: { batchIndex: number }) => call(batchIndex), { _def: { type } }),
  )
  const url = `http://localhost/${[...names.keys()]}${isBatch ? '?batch=1' : ''}`
  const headers = { 'Content-Type': 'application/json', 'trpc-accept': JSON_LINES }
  const errors: Problem[] = []
  const response = await fetchRequestHandler({
    endpoint: '',
    // The adapter uses these parts of a router.
    router: { _def: { ..._def, procedures: { ...procedures } } } as unknown as AnyTRPCRouter,
    req: new Request(url, { method, headers }),
    createContext: () => context,
    onError: ({ error }) => void errors.push(toProblem(error)),
  })
  return { status: response.status, headers: HEADERS, body: await response.text(), errors }
}
