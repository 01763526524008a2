/** The span of a request, where OpenTelemetry's SDK is loaded (deploy/tracing.mjs). */
import { type Span, SpanStatusCode, trace } from '@opentelemetry/api'
import { NAME } from '../config/product.ts'

const tracer = trace.getTracer(NAME)

/** Returns the span of the request that is being handled; undefined without the SDK. */
export const activeSpan = trace.getActiveSpan

/** Whether the SDK is loaded: without it, spans have no ids. */
export const isTraced = (): boolean =>
  trace.isSpanContextValid(tracer.startSpan('probe').spanContext())

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
