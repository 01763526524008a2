/** The run of a call, for the surface and for the client's stand-in: its output as tRPC's clients have it. */
import { ANYONE } from '../../procedure/authentication.ts'
import type { CallsOfRequest } from '../../procedure/call.ts'
import type { Operation } from '../../procedure/operation.ts'
import type { Page } from '../../procedure/paging.ts'

/**
 * Runs an operation. Returns its output; of a page the items, because clients know the next cursor by the last one. A
 * public one has the same caller as alone: clients make batches by the moment of their calls. Not async: see Body.
 */
export function runOperation(
  operation: Operation,
  request: CallsOfRequest,
  readInput: () => unknown,
  batchIndex: number,
): Promise<unknown> {
  const own = operation.access.isPublic ? { ...request, caller: ANYONE } : request
  const running = operation.run(own, readInput, batchIndex)
  return operation.isPaged ? running.then(itemsOf) : running
}

const itemsOf = (page: unknown) => (page as Page).items
