/** Names of animals: up to 255 characters, as the service counts them. */

export const MAX_LENGTH = 255

/** Returns the number of characters: code points, not UTF-16 units. */
export const lengthOf = (name: string): number => [...name].length

/** Returns the first 40 characters of a name, for a sentence. */
export const shorten = (name: string): string =>
  lengthOf(name) > 40 ? `${[...name].slice(0, 39).join('').trimEnd()}…` : name

/** Returns whether a name contains a text, ignoring case and accents. */
export const contains = (name: string, part: string): boolean =>
  fold(name).includes(fold(part.trim()))

const fold = (text: string) => text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
