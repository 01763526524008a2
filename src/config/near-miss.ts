/** The known name that a misspelled one stands for. */

/** Up to this length a name may have one mistake, above it two: short names resemble too many others. */
const SHORT = 5

/** Returns the name of `names` that is nearest to `written` in any case; undefined where none is near. */
export const nearMiss = (written: string, names: readonly string[]): string | undefined =>
  [0, 1, 2]
    .flatMap((mistakes) => names.map((name) => ({ mistakes, name })))
    .filter(({ mistakes, name }) => mistakes < 2 || name.length > SHORT)
    .find(({ mistakes, name }) => isWithin(mistakes, written.toUpperCase(), name))?.name

/** Whether so many letters, added, removed, replaced, or swapped with a neighbour, make one text the other. */
function isWithin(mistakes: number, from: string, to: string): boolean {
  if (mistakes < 0) return false
  if (from === '' || to === '') return from.length + to.length <= mistakes
  const within = (less: number, left: number, right: number) =>
    isWithin(mistakes - less, from.slice(left), to.slice(right))
  if (from[0] === to[0]) return within(0, 1, 1)
  const isSwapped = from[0] === to[1] && from[1] === to[0]
  return within(1, 1, 0) || within(1, 0, 1) || within(1, 1, 1) || (isSwapped && within(1, 2, 2))
}
