/** Exact integers in JSON, which JSON.stringify cannot write. */

/**
 * Replaces the bigints in a value by what JSON.stringify can write, and returns the value. Objects are changed in
 * place, because new ones cost a page a twentieth more: nothing else may read them.
 */
export function replaceBigints(value: unknown): unknown {
  if (typeof value === 'bigint') {
    // JSON.stringify writes numbers much faster than raw JSON.
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
  }
  if (Array.isArray(value)) return value.map(replaceBigints)
  if (typeof value !== 'object') return value // of a long text, each character would be a field
  const fields = value as Record<string, unknown>
  for (const name in fields) {
    const field = fields[name]
    if (typeof field === 'bigint' || typeof field === 'object') fields[name] = replaceBigints(field)
  }
  return value
}

declare global {
  interface JSON {
    /** https://tc39.es/proposal-json-parse-with-source/ (not yet in TypeScript's library) */
    rawJSON(text: string): object
  }
}
