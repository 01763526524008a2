/** The known name that a misspelled one stands for. */

/** Up to this length a name may have one mistake, above it two: short names resemble too many others. */
const SHORT = 5

/**
 * Returns the name of `names` that is nearest to `written`, regardless of the case of `written`.
 * Undefined where none is within one mistake, or two for a long name.
 */
export function nearMiss(written: string, names: readonly string[]): string | undefined {
  for (const mistakes of [0, 1, 2]) {
    const candidates = names.filter((name) => mistakes < 2 || name.length > SHORT)
    const near = candidates.find((name) => isWithin(mistakes, written.toUpperCase(), name))
    if (near) return near
  }
  return undefined
}

/** Whether so many letters, added, removed, replaced, or swapped with a neighbour, make one text the other. */
function isWithin(mistakes: number, from: string, to: string): boolean {
  if (mistakes < 0) return false
  if (from === '' || to === '') return from.length + to.length <= mistakes
  if (from[0] === to[0]) return isWithin(mistakes, from.slice(1), to.slice(1))
  return (
    isWithin(mistakes - 1, from.slice(1), to) ||
    isWithin(mistakes - 1, from, to.slice(1)) ||
    isWithin(mistakes - 1, from.slice(1), to.slice(1)) ||
    (from[0] === to[1] && from[1] === to[0] && isWithin(mistakes - 1, from.slice(2), to.slice(2)))
  )
}
