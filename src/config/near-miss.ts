/** The known name that a misspelled one stands for. */

/**
 * Up to this length a name may have one mistake, above it two: short names resemble too many
 * others.
 */
const SHORT = 5

/**
 * Returns the name of `names` that is nearest to `written`, regardless of the case of `written`.
 * Undefined where none is within one mistake, or two for a long name.
 */
export function nearMiss(written: string, names: readonly string[]): string | undefined {
  const mistakes = (name: string) => distance(written.toUpperCase(), name)
  const near = names.filter((name) => {
    const allowed = name.length > SHORT ? 2 : 1
    return Math.abs(name.length - written.length) <= allowed && mistakes(name) <= allowed
  })
  return near.sort((one, other) => mistakes(one) - mistakes(other))[0]
}

/**
 * Returns the Damerau-Levenshtein distance: letters to add, remove, replace, or swap with a
 * neighbour.
 */
function distance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, index) => index)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    rows.push(current)
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
    }
  }
  return at(from.length, to.length)
}
