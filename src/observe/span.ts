/** The span of a request, where OpenTelemetry's SDK is loaded (deploy/tracing.mjs). */
import { setTimeout as wait } from 'node:timers/promises'
import { type ProxyTracerProvider, trace } from '@opentelemetry/api'

/** Returns the span of the request that is being handled; undefined without the SDK. */
export const activeSpan = trace.getActiveSpan

/** Has the SDK send the spans that wait, within two seconds. Never throws: the SDK logs a failure. */
export async function flushSpans(): Promise<void> {
  const provider: Partial<ProxyTracerProvider> = trace.getTracerProvider()
  // The API does not declare it: https://opentelemetry.io/docs/specs/otel/trace/sdk/#forceflush
  const sdk = (provider.getDelegate?.() ?? provider) as { forceFlush?(): Promise<void> }
  await Promise.race([sdk.forceFlush?.().catch(() => {}), wait(2_000, undefined, { ref: false })])
}
