/**
 * Traces, in OpenTelemetry's way: a span for each call, with those of the database under it. For the
 * sake of its packages this file is loaded only where traces are wanted.
 */
import type { IncomingHttpHeaders } from 'node:http'
import * as api from '@opentelemetry/api'
import { getNumberFromEnv, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import * as resources from '@opentelemetry/resources'
import * as sdk from '@opentelemetry/sdk-trace'
import type { Trace } from '../../db/trace.ts'
import type { TracingConfig } from '../config/config.ts'
import { NAME, VERSION } from '../config/product.ts'
import type { Log } from './log.ts'

/** Milliseconds that a stop waits for the last spans to be sent. */
const FLUSH_TIMEOUT = 2_000

/** Milliseconds between two lines of the log that the collector cannot be reached, at least. */
const TELL_INTERVAL = 60_000

/** What ties a line of the log to a span. */
export interface TraceIds {
  traceId: string
  spanId: string
}

/** A request that calls something. */
export interface TracedRequest {
  operation: string
  /** The address with the names of its parameters in braces. */
  route: string | undefined
  method: string
  /** Without the query, and without keys. */
  path: string
  scheme: string
  headers: IncomingHttpHeaders
}

/** The span of a call, and the trace that its statements belong to. */
export interface CallTrace extends Trace {
  readonly ids: TraceIds
  /** Begins the span of one call of several that came with this request. */
  call(operation: string): CallTrace
  /** Begins the span of something that the call waits for; what it gives ends it. */
  wait(name: string): () => void
  /** The call is over; 5xx is an error. */
  end(status: number): void
}

export type Tracing = ReturnType<typeof startTracing>

/**
 * Starts to trace. OpenTelemetry's packages read their own variables (OTEL_…). A collector that cannot
 * be reached is told to the log once, and again when it is back; spans that cannot be sent are lost.
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

  /** The trace of what is done for these calls: for one, or for several that meet. */
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
      // All traces are made here.
      traceOf([...calls, ...others.flatMap((other) => (other as { calls?: Call[] }).calls ?? [])]),
  })

  const callTraceOf = (call: Call): CallTrace => {
    const { span, now } = call
    const { traceId, spanId } = span.spanContext()
    return {
      ...traceOf([call]),
      ids: { traceId, spanId },
      // The conventions of HTTP see one request: its calls are what it does inside.
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
    /** Begins the span of a request, under the one that its `traceparent` names. */
    begin({ operation, route, method, path, scheme, headers }: TracedRequest): CallTrace {
      const now = clock()
      // https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server
      const attributes = {
        'http.request.method': method,
        'url.path': path,
        'url.scheme': scheme,
        ...(route !== undefined && { 'http.route': route }),
      }
      const span = tracer.startSpan(
        operation,
        { kind: api.SpanKind.SERVER, attributes, startTime: now() },
        propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter),
      )
      return callTraceOf({ span, now })
    },
    /** Sends what was not sent yet, as far as there is time. */
    async stop(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, FLUSH_TIMEOUT)
      // That spans could not be sent was told already.
      provider.shutdown().then(resolve, () => resolve())
      await promise
      clearTimeout(timer)
    },
  }
}

/** A span, and the clock of its request. */
interface Call {
  span: api.Span
  now(): number
}

/**
 * Gives milliseconds since 1970, with their fractions: a span by itself begins at a full millisecond,
 * as if before those that ended before it.
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

/** https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-span-processor */
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

/**
 * An exporter whose failures are told to the log: the first, and the end of them; once a minute, if
 * they come and go.
 */
function watched(exporter: sdk.SpanExporter, log: Log): sdk.SpanExporter {
  let isTold = false
  let lastTold = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.error !== undefined
        if (hasFailed && !isTold && performance.now() - lastTold >= TELL_INTERVAL) {
          isTold = true
          lastTold = performance.now()
          log.warn(
            { err: result.error },
            'The collector of traces cannot be reached: spans are lost',
          )
        } else if (isTold && !hasFailed) {
          isTold = false
          log.info('The collector of traces can be reached again')
        }
        done(result)
      })
    },
    forceFlush: async () => await exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}

/** What a statement does with which table: https://opentelemetry.io/docs/specs/semconv/db/sql/ */
function statementNames(sql: string) {
  const operation = /^\s*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'SQL'
  const table = /\b(?:from|into|update)\s+[`"]?(\w+)/i.exec(sql)?.[1]
  const summary = table === undefined ? operation : `${operation} ${table}`
  const attributes = {
    'db.operation.name': operation,
    'db.query.summary': summary,
    ...(table !== undefined && { 'db.collection.name': table }),
  }
  return { summary, attributes }
}

// Never the message, which may have values in it, such as that of a duplicate.
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
