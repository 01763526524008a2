/** The span of a request, where OpenTelemetry's SDK is loaded (deploy/tracing.mjs). */
import { setTimeout as wait } from 'node:timers/promises'
import { type Span, SpanStatusCode, type TracerProvider, trace } from '@opentelemetry/api'
import { NAME } from '../config/product.ts'

const tracer = trace.getTracer(NAME)

/** Returns the span of the request that is being handled; undefined without the SDK. */
export const activeSpan = trace.getActiveSpan

/** Milliseconds that the last spans have to be sent. */
const FLUSH_TIMEOUT = 2_000

interface Sdk {
  /** The provider of the SDK behind that of the API. */
  getDelegate?(): Sdk
  forceFlush?(): Promise<void>
}

/** Returns the SDK, which has more than the API declares: https://opentelemetry.io/docs/specs/otel/trace/sdk/#forceflush */
function sdk(): Sdk {
  const provider = trace.getTracerProvider() as Sdk & TracerProvider
  return provider.getDelegate?.() ?? provider
}

/** Whether the SDK is loaded. */
export const isTraced = (): boolean => sdk().forceFlush !== undefined

/** Has the SDK send the spans that wait, within two seconds. Never throws. */
export async function flushSpans(): Promise<void> {
  // The SDK logs a failure, if its variables say so.
  const flushed = sdk()
    .forceFlush?.()
    .catch(() => {})
  if (flushed) await Promise.race([flushed, wait(FLUSH_TIMEOUT)])
}

/** Returns the ids of a span, for the log. */
export function idsOf(span: Span | undefined) {
  const { traceId, spanId } = span?.spanContext() ?? {}
  return { traceId, spanId }
}

/** Runs one call of a batch in a span of its own; a status of 5xx marks it as an error. */
export function inSpan<Outcome extends { status: number }>(
  name: string,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  return tracer.startActiveSpan(name, async (span) => {
    const outcome = await run()
    if (outcome.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
    return outcome
  })
}
