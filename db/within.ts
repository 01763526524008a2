/** Bounds on waiting. */

/**
 * What a promise gives, if it gives it within `timeout` milliseconds, and before `signal` is
 * aborted. Otherwise `onLate` is called, once, and this throws what it gives.
 */
export async function within<Value>(
  promise: Promise<Value>,
  timeout: number | undefined,
  signal: AbortSignal | undefined,
  onLate: () => unknown,
): Promise<Value> {
  if (timeout === undefined && signal === undefined) return await promise
  const { promise: late, reject } = Promise.withResolvers<never>()
  const stop = () => reject(onLate())
  const timer = timeout === undefined ? undefined : setTimeout(stop, timeout)
  signal?.addEventListener('abort', stop)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}
