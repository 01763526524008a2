/** Which of the names that count somebody meant who wrote another. */

/** Letters of names in which one mistake is forgiven, not two: short ones resemble too many others. */
const SHORT = 5

/** The name of `names` that `written` is a slip of the keyboard away from; undefined for any other. */
export function nearMiss(written: string, names: readonly string[]): string | undefined {
  const mistakes = (name: string) => distance(written.toUpperCase(), name)
  const near = names.filter((name) => {
    const most = name.length > SHORT ? 2 : 1
    return Math.abs(name.length - written.length) <= most && mistakes(name) <= most
  })
  return near.sort((one, other) => mistakes(one) - mistakes(other))[0]
}

/** Letters to add, leave out, replace or swap with their neighbour that make one text the other. */
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
