/** Deduplication of concurrent work. */

/**
 * Returns a function that shares one call of `make` among concurrent callers with the same key. With
 * `keep`, later callers share its result too. After a failure, the next caller starts a new call. Throws
 * the errors of `make`.
 */
export function dedupe<Key, Made>(
  make: (key: Key) => Promise<Made>,
  { keep = false }: { keep?: boolean } = {},
): (key: Key) => Promise<Made> {
  const known = new Map<Key, Promise<Made>>()
  return (key) => {
    let made = known.get(key)
    if (!made) {
      made = make(key)
      known.set(key, made)
      const forget = () => void known.delete(key)
      made.then(keep ? undefined : forget, forget)
    }
    return made
  }
}
