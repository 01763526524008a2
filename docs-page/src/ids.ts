/** The ids of parts of the page, to which links point. */

/** The form of a text in an address. */
export const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')

/** Returns a function that returns each id once: one that it has returned before receives a number. */
export function uniqueIds(): (id: string) => string {
  const taken = new Set<string>()
  return (id) => {
    let unique = id
    for (let number = 2; taken.has(unique); number++) unique = `${id}-${number}`
    taken.add(unique)
    return unique
  }
}
