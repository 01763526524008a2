/** Deduplicates concurrent work. */

/**
 * Wraps `make` so that concurrent callers with the same key share one call. With `keep`, later callers
 * share its result too. What failed is made again. Rejects with what `make` throws.
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
