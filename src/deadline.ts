/** When a call is to be given up. */
import { TRPCError } from '@trpc/server'
import { DatabaseTimeoutError } from '../db/errors.ts'

/**
 * A signal that aborts after `timeout` milliseconds, with DatabaseTimeoutError, or when the
 * client has `gone`. Call `clear` when the call is done. AbortSignal.any and AbortSignal.timeout
 * would keep every call's signal alive until its time is up.
 */
export function deadline(
  timeout: number,
  gone: AbortSignal | undefined,
): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController()
  const late = () => controller.abort(new DatabaseTimeoutError(timeout))
  const left = () =>
    controller.abort(
      new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', message: 'The client has gone' }),
    )
  const timer = setTimeout(late, timeout)
  if (gone?.aborted) left()
  else gone?.addEventListener('abort', left)
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer)
      gone?.removeEventListener('abort', left)
    },
  }
}
