/** The trace of a call, which records the statements that the call waits for. */

/** Attributes of a span, in OpenTelemetry's names: https://opentelemetry.io/docs/specs/semconv/db/ */
export type Attributes = Readonly<Record<string, string | number>>

/** The trace of a call, which its deadline carries. */
export interface Trace {
  /**
   * Records the start of a statement. `sql` has placeholders for all values. The returned function
   * records its end, with the error if it failed.
   */
  statement(sql: string, attributes: Attributes): (error?: unknown) => void
  /**
   * Returns the trace of work for several calls. A span has one parent, so the work belongs to the
   * first call that is recorded. Links connect its span with the other calls.
   */
  joined(others: Trace[]): Trace
}

/** Returns the trace of work for several calls; undefined if none of them is traced. */
export function join(traces: Iterable<Trace | undefined>): Trace | undefined {
  const [first, ...others] = [...traces].filter((trace) => trace !== undefined)
  return first && others.length > 0 ? first.joined(others) : first
}
