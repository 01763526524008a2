/** What hears of the statements that a call waits for, where calls are traced. */

/** Where a statement goes, in the names of OpenTelemetry's conventions, as attributes of its span. */
export type Target = Readonly<Record<string, string | number>>

/** The trace of a call, handed down with its deadline. */
export interface Trace {
  /**
   * Hears that a statement begins, by its text, in which placeholders stand for all values; what it
   * gives hears how it ended.
   */
  statement(sql: string, target: Target): (error?: unknown) => void
  /**
   * The trace of what is done once for several calls. A span has one parent: what is done belongs to
   * the first of them that is recorded, in whose time it mostly lies. Links lead from its span to the
   * other calls, and from the spans of these to it, so that it is found from every one of them.
   */
  joined(others: Trace[]): Trace
}

/** The trace of what is done once for several calls; undefined where nothing is traced. */
export function join(traces: Iterable<Trace | undefined>): Trace | undefined {
  const [first, ...others] = [...traces].filter((trace) => trace !== undefined)
  return first && others.length > 0 ? first.joined(others) : first
}
