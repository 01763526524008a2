/**
 * Traces with OpenTelemetry: a span for each call, and below it the spans of its statements. This file
 * is imported only where tracing is configured, because its packages are large.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import * as api from '@opentelemetry/api'
import { getNumberFromEnv, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import * as resources from '@opentelemetry/resources'
import * as sdk from '@opentelemetry/sdk-trace'
import type { Trace } from '../../db/trace.ts'
import type { TracingConfig } from '../config/config.ts'
import { NAME, VERSION } from '../config/product.ts'
import type { Log } from './log.ts'

/** Milliseconds that the stop waits for the last spans to be sent. */
const FLUSH_TIMEOUT = 2_000

/** Milliseconds between two warnings about the collector at least. */
const WARN_INTERVAL = 60_000

/** The ids of a span, for the log. */
export interface TraceIds {
  traceId: string
  spanId: string
}

/** A request that calls a procedure. */
export interface TracedRequest {
  operation: string
  /** The path template, with the names of its parameters in braces. */
  route: string
  method: string
  /** The path, without the query and without API keys. */
  path: string
  scheme: string
  headers: IncomingHttpHeaders
}

/** The span of a call, and the trace of its statements. */
export interface CallTrace extends Trace {
  readonly ids: TraceIds
  /** Begins the span of one call of a batch. */
  call(operation: string): CallTrace
  /** Begins the span of a wait within the call, and returns the function that ends it. */
  wait(name: string): () => void
  /** Ends the span with the HTTP status of the call; 5xx is an error. */
  end(status: number): void
}

export type Tracing = ReturnType<typeof startTracing>

/**
 * Starts tracing. OpenTelemetry's packages read their own variables (OTEL_…). Spans that cannot be sent
 * are lost: the log has one warning when the collector becomes unreachable, and an entry when it is
 * reachable again.
 */
export function startTracing(config: TracingConfig, log: Log) {
  const named = resources.resourceFromAttributes({
    'service.name': NAME,
    'service.version': VERSION,
  })
  const detected = resources.detectResources({
    detectors: [
      resources.serviceInstanceIdDetector,
      resources.resourceAttributesEnvDetector,
      resources.serviceNameEnvDetector,
    ],
  })
  logWarnings(log)
  const processor = new sdk.BatchSpanProcessor({
    exporter: watched(new OTLPTraceExporter(), log),
    ...batchOptions(),
  })
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(named).merge(detected),
    sampler: samplerOf(config),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer(NAME, VERSION)
  const propagator = new W3CTraceContextPropagator()

  const inside = (name: string, { span, now }: Call, options?: api.SpanOptions): api.Span =>
    tracer.startSpan(
      name,
      { ...options, startTime: now() },
      api.trace.setSpan(api.ROOT_CONTEXT, span),
    )

  /** Returns the trace of the statements that one call, or several concurrent calls, wait for. */
  const traceOf = (calls: Call[]): Trace & { calls: Call[] } => ({
    calls,
    statement(sql, target) {
      const [first, ...others] = calls.filter(({ span }) => span.isRecording())
      if (!first) return () => {}
      const { summary, attributes } = statementNames(sql)
      const span = inside(summary, first, {
        kind: api.SpanKind.CLIENT,
        attributes: { ...target, ...attributes },
        links: others.map((other) => ({ context: other.span.spanContext() })),
      })
      for (const other of others) other.span.addLink({ context: span.spanContext() })
      return (error) => {
        if (error !== undefined) {
          span.setAttributes(errorAttributes(error))
          span.setStatus({ code: api.SpanStatusCode.ERROR })
        }
        span.end(first.now())
      }
    },
    joined: (others) =>
      // Every trace comes from traceOf, so it has calls.
      traceOf([...calls, ...others.flatMap((other) => (other as { calls?: Call[] }).calls ?? [])]),
  })

  const callTraceOf = (call: Call): CallTrace => {
    const { span, now } = call
    const { traceId, spanId } = span.spanContext()
    return {
      ...traceOf([call]),
      ids: { traceId, spanId },
      // The conventions of HTTP want one SERVER span for a request: the calls of a batch are inside it.
      call: (name) => callTraceOf({ span: inside(name, call), now }),
      wait(name) {
        const waiting = inside(name, call)
        return () => waiting.end(now())
      },
      end(status) {
        span.setAttribute('http.response.status_code', status)
        if (status >= 500) {
          span.setAttribute('error.type', String(status))
          span.setStatus({ code: api.SpanStatusCode.ERROR })
        }
        span.end(now())
      },
    }
  }

  return {
    /** Begins the span of a request, below that of its `traceparent` header (W3C Trace Context). */
    begin({ operation, route, method, path, scheme, headers }: TracedRequest): CallTrace {
      const now = clock()
      // https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server
      const attributes = {
        'http.request.method': method,
        'url.path': path,
        'url.scheme': scheme,
        'http.route': route,
      }
      const span = tracer.startSpan(
        operation,
        { kind: api.SpanKind.SERVER, attributes, startTime: now() },
        propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter),
      )
      return callTraceOf({ span, now })
    },
    /** Sends the last spans, within two seconds. Never throws. */
    async stop(): Promise<void> {
      // The exporter has logged a failure already.
      const flushed = provider.shutdown().catch(() => {})
      await Promise.race([flushed, wait(FLUSH_TIMEOUT)])
    },
  }
}

/** A span, and the clock of its request. */
interface Call {
  span: api.Span
  now(): number
}

/**
 * Returns a clock in milliseconds since 1970, with fractions. By default a span begins at a full
 * millisecond, which can lie before the end of an earlier span.
 */
function clock(): () => number {
  const origin = Date.now() - performance.now()
  return () => origin + performance.now()
}

function samplerOf({ sampler, ratio }: TracingConfig): sdk.Sampler {
  const name = sampler.replace('parentbased_', '')
  const root =
    name === 'always_on'
      ? new sdk.AlwaysOnSampler()
      : name === 'always_off'
        ? new sdk.AlwaysOffSampler()
        : new sdk.TraceIdRatioBasedSampler(ratio)
  return name === sampler ? root : new sdk.ParentBasedSampler({ root })
}

/** Returns the options of https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-span-processor */
function batchOptions() {
  const names = {
    scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
    exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
    maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
    maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  }
  const options = Object.entries(names).map(
    ([option, name]) => [option, getNumberFromEnv(name)] as const,
  )
  return Object.fromEntries(options.filter(([, value]) => value !== undefined && value > 0))
}

/** Returns a function that returns whether the next warning may be logged, and takes it for logged. */
function limit(): () => boolean {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - last < WARN_INTERVAL) return false
    last = now
    return true
  }
}

/**
 * Logs the warnings of OpenTelemetry, once a minute at most. Only they report that spans were dropped
 * because the collector is slower than the calls. Its errors are failed exports, which `watched` logs.
 */
function logWarnings(log: Log): void {
  const isDue = limit()
  const warn = (message: string) => void (isDue() && log.warn(`OpenTelemetry: ${message}`))
  const ignore = () => {}
  api.diag.setLogger(
    { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
}

/** Returns an exporter that logs the first failure and the first success after it, once a minute at most. */
function watched(exporter: sdk.SpanExporter, log: Log): sdk.SpanExporter {
  const isDue = limit()
  let hasWarned = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.error !== undefined
        if (hasFailed && !hasWarned && isDue()) {
          hasWarned = true
          log.warn({ err: result.error }, 'The trace collector is unreachable: spans are lost')
        } else if (hasWarned && !hasFailed) {
          hasWarned = false
          log.info('The trace collector is reachable again')
        }
        done(result)
      })
    },
    forceFlush: async () => await exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}

/** Returns the operation and the table of a statement: https://opentelemetry.io/docs/specs/semconv/db/sql/ */
function statementNames(sql: string) {
  const operation = /^\W*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'SQL'
  const table = /\b(?:from|into|update)\s+[`"]?(\w+)/i.exec(sql)?.[1]
  const summary = table === undefined ? operation : `${operation} ${table}`
  const attributes = {
    'db.operation.name': operation,
    'db.query.summary': summary,
    ...(table !== undefined && { 'db.collection.name': table }),
  }
  return { summary, attributes }
}

// Omits the message: it may contain values, as the message of a duplicate does.
function errorAttributes(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { 'error.type': '_OTHER' }
  const driverError = error.cause instanceof Error ? error.cause : error
  const { code, errno, errcode } = driverError as NodeJS.ErrnoException & { errcode?: number }
  const status = errcode ?? errno
  return {
    'error.type': code ?? error.name,
    ...(status !== undefined && { 'db.response.status_code': String(status) }),
  }
}
