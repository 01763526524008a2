/** The known name that a misspelled one stands for. */

/** Up to this length a name may have one mistake, above it two: short names resemble too many others. */
const SHORT = 5

/** Returns the name of `names` that is nearest to `written` in any case; undefined where none is near. */
export const nearMiss = (written: string, names: readonly string[]): string | undefined =>
  [0, 1, 2]
    .flatMap((mistakes) =>
      names
        .filter((name) => mistakes < 2 || name.length > SHORT)
        .map((name) => ({ mistakes, name })),
    )
    .find(({ mistakes, name }) => isWithin(mistakes, written.toUpperCase(), name))?.name

/** Whether so many letters, added, removed, replaced, or swapped with a neighbour, make one text the other. */
function isWithin(mistakes: number, from: string, to: string): boolean {
  if (mistakes < 0) return false
  if (from === '' || to === '') return from.length + to.length <= mistakes
  const [rest, after] = [from.slice(1), to.slice(1)]
  if (from[0] === to[0]) return isWithin(mistakes, rest, after)
  return (
    [
      [rest, to],
      [from, after],
      [rest, after],
    ].some(([one = '', other = '']) => isWithin(mistakes - 1, one, other)) ||
    (from[0] === to[1] &&
      from[1] === to[0] &&
      isWithin(mistakes - 1, rest.slice(1), after.slice(1)))
  )
}
