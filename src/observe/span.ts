/** The span of a request, where OpenTelemetry's SDK is loaded (deploy/tracing.mjs). */
import { setTimeout as wait } from 'node:timers/promises'
import { type ProxyTracerProvider, trace } from '@opentelemetry/api'

/** Returns the span of the request that is being handled; undefined without the SDK. */
export const activeSpan = trace.getActiveSpan

/** Returns the SDK's part that the API does not declare: https://opentelemetry.io/docs/specs/otel/trace/sdk/#forceflush */
function sdk(): { forceFlush?(): Promise<void> } {
  const provider: Partial<ProxyTracerProvider> = trace.getTracerProvider()
  return (provider.getDelegate?.() ?? provider) as object
}

/** Whether the SDK is loaded. */
export const isTraced = (): boolean => sdk().forceFlush !== undefined

/** Has the SDK send the spans that wait, within two seconds. Never throws: the SDK logs a failure. */
export async function flushSpans(): Promise<void> {
  const flushed = sdk().forceFlush?.()
  await Promise.race([flushed?.catch(() => {}), wait(2_000, undefined, { ref: false })])
}
